"""compile: source -> normalised ONNX -> graph -> SuperNet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
from torch import nn

from autotailor.compiler.check import check_network, check_weights
from autotailor.compiler.folded import BatchNorm, check_mode, recorded
from autotailor.compiler.library import reason
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.compiler.sources.source import Source, read_source
from autotailor.ir.errors import AutoTailorError, GraphError
from autotailor.ir.execution.batch_norm import biased_convolutions, reinsert
from autotailor.ir.supernet import SuperNet


def compile_network(
    source: Source,
    space: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    resolution: int | None = None,
    weights: str | Path | None = None,
    batch_norm: BatchNorm = "auto",
    num_classes: int | None = None,
) -> SuperNet:
    """Turns a classifier into a weight-shared SuperNet (paper, section 4.1).

    Args:
        source: an ``.onnx`` file, an ``onnx.ModelProto``, ``timm:NAME``, ``module:factory``, or an ``nn.Module``.
        space: the ``space`` section of a model's configuration; None proposes one.
        name: of the network; by default the source's.
        resolution: side of the input images, for sources that do not say it themselves (pixels).
        weights: a checkpoint (``.pt``, ``.pth``, ``.safetensors`` ...) to load into the source; into an ONNX file only
            where its weights have the checkpoint's names, none folded.
        batch_norm: where it has been folded into the weights of a file: ``auto`` puts it back where the file records
            that (``folded.py``), ``reinsert`` behind every convolution with a bias, ``keep`` nowhere.
        num_classes: that a timm network or a factory is made with; any other source must have as many. None: the
            source says it.

    Raises:
        GraphError: the source cannot be read, or is no classifier.
        SpaceError: the space asks for what the network cannot offer.
    """
    check_mode(batch_norm)
    name = name or _name_of(source)
    model = read_source(source, resolution=resolution, weights=weights, num_classes=num_classes)
    if not _is_file(source):
        return _compile(model, name, None, space, batch_norm, num_classes)
    try:
        return _compile(model, name, resolution, space, batch_norm, num_classes)
    except AutoTailorError:
        raise
    except Exception as error:  # whatever a stranger's file makes of a library or of us
        raise GraphError(
            f"graph {name}: it cannot be compiled ({type(error).__name__}: {reason(error)}); check that onnxruntime "
            f"runs the file, and export it again; where it does, this is a fault of autotailor, please report it"
        ) from error


def _is_file(source: Source) -> bool:
    return isinstance(source, onnx.ModelProto) or (not isinstance(source, nn.Module) and str(source).endswith(".onnx"))


def _compile(
    model: ir.Model,
    name: str,
    resolution: int | None,
    space: Mapping[str, Any] | None,
    batch_norm: BatchNorm,
    num_classes: int | None,
) -> SuperNet:
    """The SuperNet of a model that was read."""
    folded = recorded(model)
    graph = parse(normalise(model, resolution), name)
    check_weights(graph)
    if batch_norm != "keep":
        graph = reinsert(graph, folded if batch_norm == "auto" else folded | biased_convolutions(graph))
    net = SuperNet(graph, None if space is None else dict(space))
    _ = net.space
    check_network(net)
    if num_classes is not None and num_classes != net.num_classes:
        raise GraphError(
            f"graph {net.name}: it has {net.num_classes} classes, model.num_classes is {num_classes}; set the latter "
            f"to {net.num_classes}, or give a network of {num_classes} classes"
        )
    return net


def _name_of(source: Source) -> str:
    if isinstance(source, onnx.ModelProto):
        return source.graph.name or "model"
    if isinstance(source, nn.Module):
        return type(source).__name__.lower()
    text = str(source)
    return Path(text).stem if text.endswith(".onnx") else text.rsplit(":", 1)[-1]
