"""Reads any source as one ONNX model: an ONNX file or model, a timm name, a factory, or a module."""

from __future__ import annotations

import copy
import inspect
import io
import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch
from onnx_ir.passes.common import CheckerPass, ShapeInferencePass
from torch import nn

from autotailor.compiler.library import quiet, reason
from autotailor.compiler.passes.opset import check_opset
from autotailor.compiler.passes.signature import RGB
from autotailor.compiler.sources.adaptive_pools import AdaptivePools
from autotailor.compiler.sources.checkpoints import fit, read_checkpoint
from autotailor.compiler.sources.onnx_file import check_model, read_model
from autotailor.factory import find_factory
from autotailor.ir.errors import GraphError

EXPORT_OPSET = 17
DYNAMO_OPSET = 20
DEFAULT_INPUT = (3, 224, 224)

Source = str | Path | nn.Module | onnx.ModelProto


def read_source(
    source: Source,
    *,
    resolution: int | None = None,
    weights: str | Path | None = None,
    num_classes: int | None = None,
) -> ir.Model:
    """The network as an ONNX model, with BatchNorm where the source has it.

    Args:
        source: an ``.onnx`` file, an ``onnx.ModelProto``, ``timm:NAME``, ``module:factory``, or an ``nn.Module``.
        resolution: side of the images (pixels) for which a PyTorch network is exported.
        weights: a checkpoint to load.
        num_classes: number of classes with which ``timm:NAME`` or ``module:factory`` is made; None takes its default.

    Raises:
        GraphError: the source does not exist or cannot be read; the message says what was expected.
    """
    if isinstance(source, onnx.ModelProto):
        check_model(source)
        model = _checked(lambda: ir.from_proto(source), f"graph {source.graph.name} is no valid ONNX model")
        return model if weights is None else with_weights(model, weights)
    if isinstance(source, str | Path) and str(source).endswith(".onnx"):
        model = read_onnx(Path(source))
        return model if weights is None else with_weights(model, weights)
    if isinstance(source, nn.Module):
        network = source if weights is None else copy.deepcopy(source)
    else:
        if weights is None:
            _check_own_head(str(source), num_classes)
        network = create_network(str(source), pretrained=weights is None, num_classes=num_classes)
    if weights is not None:
        load_weights(network, weights)
    return export_module(network, resolution)


def read_onnx(path: Path) -> ir.Model:
    """Reads and checks an ONNX file, with the weights that it stores as external data."""
    model = read_model(path)
    return _checked(lambda: ir.from_proto(model), f"{path} is no valid ONNX file")


def _checked(read: Callable[[], ir.Model], complaint: str) -> ir.Model:
    """Reads a model, and refuses it where ONNX's checker does.

    Args:
        read: gives the model.
        complaint: how the message begins where the model is refused.
    """
    try:
        with quiet():
            model = read()
            if model.graph.opset_imports:
                check_opset(model)
            if any(value.shape is None for value in model.graph.outputs):
                ShapeInferencePass()(model)  # the checker needs the shapes of outputs; onnxruntime does not
            CheckerPass()(model)
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(f"{complaint}: {reason(error)}; export it again") from error
    return model


def create_network(source: str, *, pretrained: bool = True, num_classes: int | None = None) -> nn.Module:
    """A module from ``timm:NAME`` or ``module:factory``.

    Args:
        source: ``timm:NAME`` or ``module:factory``.
        pretrained: whether a timm network gets its trained weights; otherwise they are random.
        num_classes: of the head, for timm and for factories with this parameter. Where timm's weights have another
            number of classes, the head is untrained.

    Raises:
        GraphError: the source does not exist or cannot be called.
    """
    if source.endswith(".onnx"):
        raise GraphError(
            f"source {source} is an ONNX file, which is not trained from scratch; set model.weights to null to take "
            f"the weights of the file, or name timm:NAME or module:factory as model.source"
        )
    prefix, _, rest = source.partition(":")
    if not rest:
        raise GraphError(f"source {source!r}: expected a path ending in .onnx, timm:NAME, or module:factory")
    make = _call_factory if prefix != "timm" else _create_timm
    return make(prefix, rest, pretrained, num_classes)


def _create_timm(_: str, name: str, pretrained: bool, num_classes: int | None) -> nn.Module:
    import timm

    from autotailor.compiler.sources.hub import hub

    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('_')[0]}*")[:8]
        raise GraphError(f"timm has no model {name!r}; similar names: {', '.join(close) or 'none'}")
    try:
        with quiet(), hub() if pretrained else nullcontext():
            chosen: dict[str, Any] = {} if num_classes is None else {"num_classes": num_classes}
            network: nn.Module = timm.create_model(name, pretrained=pretrained, **chosen)
    except Exception as error:
        raise GraphError(
            f"the pretrained weights of timm's {name} could not be fetched ({type(error).__name__}: {reason(error)}); "
            f"download them on a machine with a network and set model.weights to the file, or give the trained network "
            f"as an .onnx file; "
            f"`inspect --random-weights` shows the network's structure without its weights"
        ) from error
    return network


def _check_own_head(source: str, num_classes: int | None) -> None:
    """Refuses timm's own weights for another number of classes than theirs, because the head would be random."""
    if num_classes is None or not source.startswith("timm:"):
        return
    import timm

    config = timm.get_pretrained_cfg(source.removeprefix("timm:"), allow_unregistered=True)
    if config is not None and config.num_classes not in (None, 0, num_classes):
        raise GraphError(
            f"source {source}: its own weights have {config.num_classes} classes, model.num_classes is {num_classes}, "
            f"so that its head would be untrained; set model.weights to a checkpoint of {num_classes} classes, or to "
            f"pretrain, with a pretrain section (conf/model/resnet_digits.yaml), to train it on the data"
        )


def _call_factory(module: str, factory: str, _: bool, num_classes: int | None) -> nn.Module:
    function = find_factory(f"{module}:{factory}", f"source {module}:{factory}", GraphError)
    try:
        chosen = {"num_classes": num_classes} if num_classes is not None and _takes_classes(function) else {}
        made: Any = function(**chosen)
    except (AttributeError, TypeError) as error:
        raise GraphError(
            f"source {module}:{factory}: {error}; expected a function that makes the network without arguments"
        ) from error
    if not isinstance(made, nn.Module):
        raise GraphError(f"source {module}:{factory}: it made a {type(made).__name__}, not a torch.nn.Module")
    return made


def _takes_classes(function: Any) -> bool:
    """Whether a factory has a parameter ``num_classes``, or those of timm and torchvision that pass it on."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a builtin without a signature
        return False
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    library = str(getattr(function, "__module__", "")).split(".")[0] in ("timm", "torchvision")
    return "num_classes" in parameters or (passes_on and library)


def load_weights(network: nn.Module, path: str | Path) -> None:
    """Loads a checkpoint into a module.

    Raises:
        GraphError: the checkpoint cannot be read, or belongs to another network.
    """
    own = network.state_dict()
    remedy = "name a checkpoint of this network, or the source to which the checkpoint belongs"
    state = fit(read_checkpoint(path), {name: tuple(tensor.shape) for name, tensor in own.items()}, path, remedy)
    network.load_state_dict({**own, **state})


def with_weights(model: ir.Model, path: str | Path) -> ir.Model:
    """Replaces an ONNX model's weights by a checkpoint's tensors; the checkpoint must hold every weight's name.

    Raises:
        GraphError: the checkpoint cannot be read, or the exporter renamed, transposed or folded weights.
    """
    tensors = {str(name): value.const_value for name, value in model.graph.initializers.items() if value.uses()}
    shapes = {
        name: tuple(int(size) for size in tensor.shape.numpy())
        for name, tensor in tensors.items()
        if tensor is not None and tensor.dtype.is_floating_point()
    }
    state = read_checkpoint(path)
    wanted = {name: shape for name, shape in shapes.items() if math.prod(shape) > 1 or name in state}
    remedy = (
        "where the exporter folded, renamed or transposed weights, a checkpoint cannot be put into the file: load it "
        "into the PyTorch network and export that, or name the network as model.source (module:factory)"
    )
    for name, tensor in fit(state, wanted, path, remedy).items():
        value = model.graph.initializers[name]
        assert value.const_value is not None
        kind = value.const_value.dtype.numpy()
        value.const_value = ir.tensor(tensor.detach().float().numpy().astype(kind), name=name)
    return model


def export_module(network: nn.Module, resolution: int | None) -> ir.Model:
    """Exports a module in evaluation mode with BatchNorm and batch 1: by tracing or, if that fails, by torch.export.

    Raises:
        GraphError: neither of PyTorch's exporters can export the module.
    """
    channels, height, width = _own_input(network)
    parameter = next(network.parameters(), torch.empty(0))
    size = (resolution, resolution) if resolution else (height, width)
    image = torch.zeros(1, RGB, *size, device=parameter.device, dtype=parameter.dtype)
    training = network.training
    try:
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")
            if channels != RGB and not _reads(network.eval(), image):
                image = image[:, :1].expand(-1, channels, -1, -1)  # signature.py refuses it later, with a remedy
            try:
                return _trace(network.eval(), image)
            except Exception as error:
                return _capture(network, image, error)
    finally:
        network.train(training)


@torch.no_grad()
def _reads(network: nn.Module, image: torch.Tensor) -> bool:
    """Whether a network accepts images of that shape."""
    try:
        network(image)
    except Exception:
        return False
    return True


def _trace(network: nn.Module, image: torch.Tensor) -> ir.Model:
    """Exports with PyTorch's classic exporter, which records each operator while the network runs."""
    buffer = io.BytesIO()
    with AdaptivePools():
        torch.onnx.export(
            network,
            (image,),
            buffer,  # type: ignore[arg-type]  # the classic exporter also writes to streams
            dynamo=False,
            opset_version=EXPORT_OPSET,
            do_constant_folding=False,
            input_names=["input"],
            output_names=["output"],
        )
    return ir.from_proto(onnx.load_from_string(buffer.getvalue()))


def _capture(network: nn.Module, image: torch.Tensor, error: Exception) -> ir.Model:
    """Exports with PyTorch's newer exporter, without its optimiser, because the optimiser would fold BatchNorm.

    Args:
        network: to export.
        image: ``[1, 3, R, R]``.
        error: of the classic exporter, for the message.
    """
    try:
        program = torch.onnx.export(
            network, (image,), dynamo=True, opset_version=DYNAMO_OPSET, optimize=False, verbose=False
        )
        assert program is not None
        model: ir.Model = program.model
    except Exception:
        own = list(_own_input(network)[1:])
        remedy = (
            "" if own == list(image.shape[2:]) else f"; the network is made for {own[0]}x{own[1]} pixels, try those"
        )
        raise GraphError(
            f"{type(network).__name__} cannot be exported from an image of shape {list(image.shape)}: "
            f"{reason(error)}{remedy}"
        ) from error
    return model


def _own_input(network: nn.Module) -> tuple[int, int, int]:
    """(channels, height, width) from timm's configuration, or the channels of the first convolution and 224 x 224."""
    config = getattr(network, "default_cfg", None) or {}
    if config.get("input_size"):
        channels, height, width = config["input_size"]
        return int(channels), int(height), int(width)
    first = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
    return (first.in_channels if first else DEFAULT_INPUT[0], *DEFAULT_INPUT[1:])
