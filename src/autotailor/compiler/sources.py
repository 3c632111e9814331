"""Sources: an ONNX file or model, a timm name, a factory, or a module, as one ONNX model."""

from __future__ import annotations

import importlib
import io
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
from autotailor.compiler.onnx_file import check_model, read_model
from autotailor.compiler.passes.opset import check_opset
from autotailor.compiler.passes.signature import RGB
from autotailor.ir.errors import GraphError

EXPORT_OPSET = 17
DYNAMO_OPSET = 20
DEFAULT_INPUT = (3, 224, 224)

Source = str | Path | nn.Module | onnx.ModelProto


def read_source(source: Source, *, resolution: int | None = None, weights: str | Path | None = None) -> ir.Model:
    """The network as an ONNX model, BatchNorm kept where the source has it.

    Raises:
        GraphError: the source does not exist or cannot be read; the message says what was expected.
    """
    if isinstance(source, onnx.ModelProto):
        check_model(source)
        return _checked(lambda: ir.from_proto(source), f"graph {source.graph.name} is no valid ONNX model")
    if isinstance(source, nn.Module):
        return export_module(source, resolution)
    text = str(source)
    if text.endswith(".onnx"):
        return read_onnx(Path(text))
    network = create_network(text)
    if weights is not None:
        load_weights(network, weights)
    return export_module(network, resolution)


def read_onnx(path: Path) -> ir.Model:
    """Reads and checks an ONNX file; weights stored as external data are read with it."""
    model = read_model(path)
    return _checked(lambda: ir.from_proto(model), f"{path} is no valid ONNX file")


def _checked(read: Callable[[], ir.Model], complaint: str) -> ir.Model:
    """A model that ONNX's checker accepts; weights are left out of the check."""
    try:
        with quiet():
            model = read()
            if model.graph.opset_imports:
                check_opset(model)
            if any(value.shape is None for value in model.graph.outputs):
                ShapeInferencePass()(model)  # onnxruntime does without, the checker does not
            CheckerPass()(model)
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(f"{complaint}: {reason(error)}; export it again") from error
    return model


def create_network(source: str, *, pretrained: bool = True) -> nn.Module:
    """A module from ``timm:NAME`` (with its pretrained weights, or random ones) or ``module:factory``."""
    prefix, _, rest = source.partition(":")
    if not rest:
        raise GraphError(f"source {source!r}: expected a path ending in .onnx, timm:NAME, or module:factory")
    return _create_timm(rest, pretrained) if prefix == "timm" else _call_factory(prefix, rest)


def _create_timm(name: str, pretrained: bool) -> nn.Module:
    import timm

    from autotailor.compiler.hub import hub

    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('_')[0]}*")[:8]
        raise GraphError(f"timm has no model {name!r}; similar names: {', '.join(close) or 'none'}")
    try:
        with quiet(), hub() if pretrained else nullcontext():
            network: nn.Module = timm.create_model(name, pretrained=pretrained)
    except Exception as error:
        raise GraphError(
            f"the pretrained weights of timm's {name} could not be fetched ({type(error).__name__}: {reason(error)}); "
            f"download them where there is a network and set model.weights to the file, with "
            f"model.source=timm.models:{name}, or give the trained network as an .onnx file; "
            f"`inspect --random-weights` shows its structure without them"
        ) from error
    return network


def _call_factory(module: str, factory: str) -> nn.Module:
    try:
        made: Any = getattr(importlib.import_module(module), factory)()
    except ImportError as error:
        raise GraphError(f"source {module}:{factory}: module {module} cannot be imported: {error}") from error
    except (AttributeError, TypeError) as error:
        raise GraphError(
            f"source {module}:{factory}: {error}; expected a function that makes the network without arguments"
        ) from error
    if not isinstance(made, nn.Module):
        raise GraphError(f"source {module}:{factory}: it made a {type(made).__name__}, not a torch.nn.Module")
    return made


def load_weights(network: nn.Module, path: str | Path) -> None:
    """Loads a state dict file into a module."""
    if not Path(path).is_file():
        raise GraphError(f"weights file {path} does not exist; put the state dict of the network there")
    try:
        state = torch.load(str(path), weights_only=True, map_location="cpu")
        network.load_state_dict(state.get("state_dict", state))
    except Exception as error:
        raise GraphError(f"weights file {path} does not fit the network: {error}") from error


def export_module(network: nn.Module, resolution: int | None) -> ir.Model:
    """Exports a module in evaluation mode, BatchNorm kept, batch 1; what cannot be traced goes through torch.export.

    Raises:
        GraphError: neither of PyTorch's exporters can.
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
                image = image[:, :1].expand(-1, channels, -1, -1)  # what refuses other channels says what to do
            try:
                return _trace(network.eval(), image)
            except Exception as error:
                return _capture(network, image, error)
    finally:
        network.train(training)


@torch.no_grad()
def _reads(network: nn.Module, image: torch.Tensor) -> bool:
    """Whether a network takes images of that shape."""
    try:
        network(image)
    except Exception:
        return False
    return True


def _trace(network: nn.Module, image: torch.Tensor) -> ir.Model:
    """The classic exporter: node by node as PyTorch runs it."""
    buffer = io.BytesIO()
    torch.onnx.export(
        network,
        (image,),
        buffer,  # type: ignore[arg-type]  # the classic exporter writes to streams too
        dynamo=False,
        opset_version=EXPORT_OPSET,
        do_constant_folding=False,
        input_names=["input"],
        output_names=["output"],
    )
    return ir.from_proto(onnx.load_from_string(buffer.getvalue()))


def _capture(network: nn.Module, image: torch.Tensor, error: Exception) -> ir.Model:
    """The newer exporter, without its optimiser, which would fold BatchNorm."""
    try:
        program = torch.onnx.export(
            network, (image,), dynamo=True, opset_version=DYNAMO_OPSET, optimize=False, verbose=False
        )
        assert program is not None
        model: ir.Model = program.model
    except Exception:
        raise GraphError(
            f"{type(network).__name__} cannot be exported from an image of shape {list(image.shape)}: {reason(error)}"
        ) from error
    return model


def _own_input(network: nn.Module) -> tuple[int, int, int]:
    """(channels, height, width): what timm's networks say about their input, or what the first convolution reads."""
    config = getattr(network, "default_cfg", None) or {}
    if config.get("input_size"):
        channels, height, width = config["input_size"]
        return int(channels), int(height), int(width)
    first = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
    return (first.in_channels if first else DEFAULT_INPUT[0], *DEFAULT_INPUT[1:])
