"""Sources: an ONNX file, a timm name, a factory, or a module, as one ONNX model."""

from __future__ import annotations

import importlib
import io
import warnings
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

from autotailor.ir.errors import GraphError

EXPORT_OPSET = 17
DEFAULT_RESOLUTION = 224


def read_source(
    source: str | Path | nn.Module, *, resolution: int | None = None, weights: str | Path | None = None
) -> onnx.ModelProto:
    """The network as an ONNX model, BatchNorm kept.

    Raises:
        GraphError: the source does not exist or cannot be read; the message says what was expected.
    """
    if isinstance(source, nn.Module):
        return export_module(source, resolution)
    text = str(source)
    if text.endswith(".onnx"):
        return read_onnx(Path(text))
    network = create_network(text)
    if weights is not None:
        load_weights(network, weights)
    return export_module(network, resolution)


def read_onnx(path: Path) -> onnx.ModelProto:
    """Reads and checks an ONNX file."""
    if not path.is_file():
        raise GraphError(f"ONNX file {path} does not exist")
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GraphError(f"{path} is no valid ONNX file: {first_line}; export it again") from error
    return model


def create_network(source: str, *, pretrained: bool = True) -> nn.Module:
    """A module from ``timm:NAME`` (with its pretrained weights, or random ones) or ``module:factory``."""
    prefix, _, rest = source.partition(":")
    if not rest:
        raise GraphError(f"source {source!r}: expected a path ending in .onnx, timm:NAME, or module:factory")
    return _create_timm(rest, pretrained) if prefix == "timm" else _call_factory(prefix, rest)


def _create_timm(name: str, pretrained: bool) -> nn.Module:
    import timm

    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('_')[0]}*")[:8]
        raise GraphError(f"timm has no model {name!r}; similar names: {', '.join(close) or 'none'}")
    try:
        network: nn.Module = timm.create_model(name, pretrained=pretrained)
    except Exception as error:
        raise GraphError(
            f"the pretrained weights of timm's {name} could not be fetched ({type(error).__name__}); "
            f"download them where there is a network and set model.weights to the file, with "
            f"model.source=timm.models:{name}"
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


def export_module(network: nn.Module, resolution: int | None) -> onnx.ModelProto:
    """Exports a module in evaluation mode, BatchNorm kept, batch 1."""
    side = resolution or _own_resolution(network)
    buffer = io.BytesIO()
    image = torch.zeros(1, 3, side, side)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (image,),
            buffer,  # type: ignore[arg-type]  # the classic exporter writes to streams too
            dynamo=False,
            opset_version=EXPORT_OPSET,
            do_constant_folding=False,
            input_names=["input"],
            output_names=["output"],
        )
    return onnx.load_from_string(buffer.getvalue())


def _own_resolution(network: nn.Module) -> int:
    """What timm's networks say about their input."""
    config = getattr(network, "default_cfg", None) or {}
    size = config.get("input_size") or (3, DEFAULT_RESOLUTION, DEFAULT_RESOLUTION)
    return int(size[-1])
