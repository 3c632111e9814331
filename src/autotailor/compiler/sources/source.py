"""Reads any source as one ONNX model: an ONNX file or model, a timm name, a factory, or a module."""

import copy
import math
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import CheckerPass, ShapeInferencePass
from torch import nn

from autotailor.compiler.library import quiet, reason
from autotailor.compiler.passes.opset import check_opset
from autotailor.compiler.sources.checkpoints import fit, read_checkpoint
from autotailor.compiler.sources.export import export_module
from autotailor.compiler.sources.network import check_own_head, create_network
from autotailor.compiler.sources.onnx_file import check_model, read_model
from autotailor.compiler.sources.outputs import Output, keep_output, take_output
from autotailor.ir.errors import GraphError

Source = str | Path | nn.Module | onnx.ModelProto


def read_source(
    source: Source,
    *,
    resolution: int | None = None,
    weights: str | Path | None = None,
    num_classes: int | None = None,
    output: Output | None = None,
) -> tuple[ir.Model, nn.Module | None]:
    """The network as an ONNX model, with BatchNorm where the source has it, and the module that was exported, if any.

    Args:
        source: an ``.onnx`` file, an ``onnx.ModelProto``, ``timm:NAME``, ``module:factory``, or an ``nn.Module``.
        resolution: side of the images (pixels) for which a PyTorch network is exported.
        weights: a checkpoint to load.
        num_classes: number of classes with which ``timm:NAME`` or ``module:factory`` is made; None takes its default.
        output: name of one of several outputs, or a list of names; of a tuple the position. None takes all.

    Raises:
        GraphError: the source does not exist or cannot be read; the message says what was expected.
    """
    if isinstance(source, onnx.ModelProto):
        check_model(source)
        model = _checked(lambda: ir.from_proto(source), f"graph {source.graph.name} is no valid ONNX model")
        return _prepared(model, weights, output), None
    if isinstance(source, str | Path) and str(source).endswith(".onnx"):
        return _prepared(read_onnx(Path(source)), weights, output), None
    if isinstance(source, nn.Module):
        network = source if weights is None and output is None else copy.deepcopy(source)
    else:
        if weights is None:
            check_own_head(str(source), num_classes)
        network = create_network(str(source), pretrained=weights is None, num_classes=num_classes)
    if weights is not None:
        load_weights(network, weights)
    if output is not None:
        take_output(network, output)
    return export_module(network, resolution), network


def _prepared(model: ir.Model, weights: str | Path | None, output: Output | None) -> ir.Model:
    """A model of a file with the weights of a checkpoint, and with one output, where these are named."""
    if output is not None:
        keep_output(model, output)
    return model if weights is None else with_weights(model, weights)


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
    expected = {name: shape for name, shape in shapes.items() if math.prod(shape) > 1 or name in state}
    remedy = (
        "where the exporter folded, renamed or transposed weights, a checkpoint cannot be put into the file: load it "
        "into the PyTorch network and export that, or name the network as model.source (module:factory)"
    )
    for name, tensor in fit(state, expected, path, remedy).items():
        value = model.graph.initializers[name]
        assert value.const_value is not None
        kind = value.const_value.dtype.numpy()
        value.const_value = ir.tensor(tensor.detach().float().numpy().astype(kind), name=name)
    return model
