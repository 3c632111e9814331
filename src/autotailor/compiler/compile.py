"""The stage ``compile``: source -> normalised ONNX -> graph -> SuperNet.

An exporter may have folded BatchNorm into convolutions, and says so in the file's records. The weights themselves do
not show folding: VGG, SqueezeNet and AlexNet never had BatchNorm, and their weights look like
folded ones. Therefore only the exporters' records count. Without a record, BatchNorm is put back only where the user
asks for it.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import onnx
import onnx_ir as ir
import torch
from torch import nn

from autotailor.compiler.check import check_network, check_resolution, check_weights
from autotailor.compiler.library import reason
from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.compiler.passes.layout import given
from autotailor.compiler.rewrites.frozen_norms import with_folded_norms
from autotailor.compiler.sources.outputs import Output, flat, no_classes
from autotailor.compiler.sources.source import Source, read_onnx, read_source
from autotailor.compiler.traced import check_export, warn_of_unused
from autotailor.ir.errors import AutoTailorError, GraphError
from autotailor.ir.execution.batch_norm import FOLDED_INTO, biased_convolutions, reinsert
from autotailor.ir.execution.modules.graph import GraphModule, tensors
from autotailor.ir.graph import Graph
from autotailor.ir.supernet import SuperNet

BatchNorm = Literal["auto", "reinsert", "keep"]

_RULES = "pkg.onnxscript.rewriter.rule_name"  # torch's dynamo exporter lists the rewrites of a node
_TORCH = re.compile(r"(onnx::Conv_)?\d+")  # torch's classic exporter numbers tensors that are not parameters
_TF2ONNX = (re.compile(r".*_weights_fused_bn(__\d+)?"), re.compile(r".*_bias_fused_bn(__\d+)?"))


def compile_network(
    source: Source,
    space: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    resolution: int | None = None,
    weights: str | Path | None = None,
    batch_norm: BatchNorm = "auto",
    num_classes: int | None = None,
    output: Output | None = None,
) -> SuperNet:
    """Turns a network for images into a weight-shared SuperNet (paper, section 4.1).

    Args:
        source: an ``.onnx`` file, an ``onnx.ModelProto``, ``timm:NAME``, ``module:factory``, or an ``nn.Module``.
        space: the ``space`` section of a model's configuration; None proposes one.
        name: of the network; by default derived from the source.
        resolution: side of the input images (pixels), for sources that do not fix it.
        weights: a checkpoint (``.pt``, ``.pth``, ``.safetensors`` ...) to load into the source. An ONNX file accepts
            a checkpoint only where their weights have the same names and no weight is folded.
        batch_norm: where to put BatchNorm back that was folded into weights: ``auto`` where the file records the
            folding (``recorded``), ``reinsert`` behind every convolution with a bias, ``keep`` nowhere.
        num_classes: number of classes with which a timm network or a factory is made, and which any other source must
            have. None takes the source's own number.
        output: name of the output to keep, where the source returns several tensors, or a list of names; of a tuple the
            position. Of a file, tensors within the graph may be named. None keeps all.

    Raises:
        GraphError: the source cannot be read, or is no network for images.
        SpaceError: the space asks for modifications that the network does not allow.
    """
    check_mode(batch_norm)
    _check_resolution(resolution)
    name = name or _name_of(source)
    model, network = read_source(source, resolution=resolution, weights=weights, num_classes=num_classes, output=output)
    if not _is_file(source):
        net = _compile(model, name, None, space, batch_norm, num_classes, network)
        if network is not None:
            check_resolution(net, partial(_evaluate, network))
        return net
    try:
        net = _compile(model, name, resolution, space, batch_norm, num_classes)
    except AutoTailorError:
        raise
    except Exception as error:  # a user's file may break a library, or this package, in unforeseen ways
        raise GraphError(
            f"graph {name}: it cannot be compiled ({type(error).__name__}: {reason(error)}); check that onnxruntime "
            f"runs the file, and export it again; if onnxruntime does, please report this as an error of autotailor"
        ) from error
    if resolution is not None:  # the sides of its images may be dynamic
        check_resolution(
            net, lambda image: _evaluate_file(read_source(source, weights=weights, output=output)[0], image)
        )
    return net


def read_graph(path: Path) -> Graph:
    """The graph of an ``.onnx`` file, normalised as by ``compile_network``, without a space.

    Raises:
        GraphError: the file cannot be read, or holds no network for images.
    """
    return parse(normalise(read_onnx(path)), path.stem)


def _check_resolution(resolution: object) -> None:
    """Raises GraphError unless the resolution is None or a number of pixels."""
    whole = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if resolution is not None and not (whole and resolution >= 1):  # type: ignore[operator]
        raise GraphError(f"resolution is {resolution!r}, expected the side of the square images in pixels, such as 224")


def _is_file(source: Source) -> bool:
    return isinstance(source, onnx.ModelProto) or (not isinstance(source, nn.Module) and str(source).endswith(".onnx"))


def _compile(
    model: ir.Model,
    name: str,
    resolution: int | None,
    space: Mapping[str, Any] | None,
    batch_norm: BatchNorm,
    num_classes: int | None,
    network: nn.Module | None = None,
) -> SuperNet:
    """Compiles an ONNX model that was read from its source; ``network`` is the module whose export it is."""
    folded = recorded(model)
    parsed = parse(normalise(model, resolution), name)
    check_weights(parsed)
    graph, frozen = with_folded_norms(parsed)
    if batch_norm != "keep":
        graph = reinsert(graph, folded | frozen | (biased_convolutions(graph) if batch_norm != "auto" else set()))
    graph = replace(_with_kinds(graph, network), given=given(model))
    net = SuperNet.of(graph, dict(space) if isinstance(space, Mapping) else space)
    check_network(net)
    if network is not None:
        check_export(network, parsed)
        warn_of_unused(network, torch.zeros(parsed.shapes[parsed.input]))
    if num_classes is not None and num_classes != net.num_classes:
        if not net.num_classes:
            raise GraphError(f"graph {net.name}: it {no_classes(net.graph.outputs)}; else remove model.num_classes")
        raise GraphError(
            f"graph {net.name}: it has {net.num_classes} classes, model.num_classes is {num_classes}; set "
            f"model.num_classes to {net.num_classes}, or give a network of {num_classes} classes"
        )
    return net


def _with_kinds(graph: Graph, network: nn.Module | None) -> Graph:
    """The graph with what a module says of the constants that bear its names: parameters, or buffers."""
    if network is None:
        return graph
    trained = {name for name, parameter in network.named_parameters() if parameter.is_floating_point()}
    buffers = {name for name, _ in network.named_buffers()} - trained
    names = graph.weights.keys()
    return replace(graph, parameters=frozenset(trained & names), buffers=frozenset(buffers & names))


def _evaluate(network: nn.Module, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Runs a copy of a PyTorch network on an image; some networks keep what they have computed for an image's size."""
    parameter = next(network.parameters(), image)
    return tuple(output.to(image) for output in flat(copy.deepcopy(network).eval()(image.to(parameter))).values())


def _evaluate_file(model: ir.Model, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Runs an ONNX model, whose image sizes are dynamic, on an image."""
    return tensors(GraphModule(parse(normalise(model, image.shape[-1]), "source")).eval()(image))


def _name_of(source: Source) -> str:
    if isinstance(source, onnx.ModelProto):
        return source.graph.name or "model"
    if isinstance(source, nn.Module):
        return type(source).__name__.lower()
    text = str(source)
    return Path(text).stem if text.endswith(".onnx") else text.rsplit(":", 1)[-1]


def check_mode(mode: str) -> None:
    """Raises GraphError unless ``mode`` is one of the values of ``BatchNorm``."""
    if mode not in get_args(BatchNorm):
        raise GraphError(f"batch_norm {mode!r}: expected one of {', '.join(get_args(BatchNorm))}")


def recorded(model: ir.Model) -> frozenset[str]:
    """Names of the output tensors of all operators with folded BatchNorm, according to the exporter's records.

    - torch, dynamo: the node's metadata lists the rewrite ``FuseBatchNormInto...``.
    - torch, classic: the names of weight *and* bias of a Conv are numbers (``onnx::Conv_497``) instead of names of a
      module's parameters. Where the exporter only standardises or reparametrises weights, the bias keeps its name.
    - tf2onnx: weight and bias are called ``..._weights_fused_bn`` and ``..._bias_fused_bn``.
    """
    torch = model.producer_name == "pytorch"
    return frozenset(
        str(node.outputs[0].name)
        for node in model.graph
        if node.op_type in FOLDED_INTO and not node.domain and (_rewritten(node) or _named(node, torch))
    )


def _rewritten(node: ir.Node) -> bool:
    return "FuseBatchNormInto" in node.metadata_props.get(_RULES, "")


def _named(node: ir.Node, torch: bool) -> bool:
    if node.op_type != "Conv" or len(node.inputs) < 3 or node.inputs[1] is None or node.inputs[2] is None:
        return False
    weight, bias = str(node.inputs[1].name), str(node.inputs[2].name)
    if torch and _TORCH.fullmatch(weight) and _TORCH.fullmatch(bias):
        return True
    return bool(_TF2ONNX[0].fullmatch(weight) and _TF2ONNX[1].fullmatch(bias))
