"""Names the tensors that a network returns, and takes one of them where one is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from autotailor.ir.errors import GraphError
from autotailor.ir.graph import OUTPUT

if TYPE_CHECKING:
    import onnx_ir as ir

KEY = "model.output"
Output = str | int | Sequence[str | int]
"""The name of an output, or its position in a tuple; or those of several."""


def no_classes(outputs: Sequence[str]) -> str:
    """Why a network is no classifier, and what to do where one of the tensors that it returns is the row of classes."""
    if len(outputs) < 2:
        return "returns no row of classes"
    return (
        f"returns {len(outputs)} tensors ({', '.join(outputs)}), and so no row of classes; where one of them is that "
        f"row, name it as {KEY} (inspect: --output)"
    )


def take_output(network: nn.Module, output: Output) -> nn.Module:
    """Lets a module return some of its outputs only; changes the module, and returns it.

    Args:
        network: returns a mapping, a dataclass, a named tuple, a tuple or a list of tensors.
        output: name of the output, or names of several; of tuples and lists the position, from 0.
    """
    network.register_forward_hook(lambda module, _, returned: _picked(module, returned, output))
    return network


def keep_output(model: ir.Model, output: Output) -> None:
    """Lets an ONNX model return the tensors that are named only, and removes what these do not need.

    Args:
        model: changed in place.
        output: name of an output, or of a tensor within the graph, behind which it is then cut; or names of several.

    Raises:
        GraphError: the model has no tensor of a name.
    """
    from onnx_ir.passes.common import RemoveUnusedNodesPass, ShapeInferencePass

    names, graph = [str(each) for each in ([output] if isinstance(output, str | int) else output)], model.graph
    inner = {str(value.name): value for node in graph for value in node.outputs}
    values = inner | {str(value.name): value for value in graph.outputs}
    for name in names:
        if name not in values:
            raise GraphError(
                f"graph {graph.name}: it has no output {name}; set {KEY} to one of "
                f"{', '.join(str(value.name) for value in graph.outputs)}, or to tensors within the graph"
            )
    graph.outputs.clear()
    graph.outputs.extend(values[name] for name in names)
    RemoveUnusedNodesPass()(model)
    if any(value.dtype is None for value in graph.outputs):
        ShapeInferencePass()(model)


def name_outputs(network: nn.Module, model: ir.Model, image: torch.Tensor) -> None:
    """Gives several outputs of a module's export the names under which the module returns them.

    Args:
        network: the module, in evaluation mode.
        model: its export, whose outputs are renamed.
        image: with which it was exported.
    """
    if len(model.graph.outputs) < 2:
        return
    with torch.no_grad():
        named = flat(network(image))
    if len(named) == len(model.graph.outputs):
        for value, name in zip(model.graph.outputs, named, strict=True):
            value.name = name


def flat(returned: Any, prefix: str = "") -> dict[str, torch.Tensor]:
    """The tensors that a module returns, in their order, by name: ``boxes.0`` is the first of a list ``boxes``.

    A tensor alone, and those of a plain tuple or list, are called ``output`` and ``output.0``, ``output.1`` ...
    """
    if isinstance(returned, torch.Tensor):
        return {prefix or OUTPUT: returned}
    places = isinstance(returned, tuple | list) and not hasattr(returned, "_fields")
    start = prefix or (OUTPUT if places else "")
    tensors: dict[str, torch.Tensor] = {}
    for name, value in _named(returned).items():
        tensors |= flat(value, f"{start}.{name}" if start else name)
    return tensors


def _picked(network: nn.Module, returned: Any, output: Output) -> Any:
    if isinstance(returned, torch.Tensor) and network.training:
        return returned  # some networks return their logits alone in training
    if not isinstance(output, str | int):
        return {str(each): _picked(network, returned, each) for each in output}
    named, output = _named(returned), str(output)
    if output not in named:
        said = f"returns {_listed(named)}, and no" if named else "returns one tensor, and no output called"
        remedy = f"set {KEY} to one of these" if named else f"remove {KEY}"
        raise GraphError(f"{type(network).__name__} {said} {output}; {remedy}")
    return named[output]


def _named(returned: Any) -> dict[str, Any]:
    """What a module returns, by name; empty for a tensor."""
    if isinstance(returned, Mapping):
        return {str(name): value for name, value in returned.items()}
    if dataclasses.is_dataclass(returned) and not isinstance(returned, type):
        return {field.name: getattr(returned, field.name) for field in dataclasses.fields(returned)}
    if isinstance(returned, tuple | list):
        return {
            str(name): value
            for name, value in zip(getattr(returned, "_fields", range(len(returned))), returned, strict=True)
        }
    return {}


def _listed(named: Mapping[str, Any]) -> str:
    shapes = {
        name: [int(size) for size in value.shape] for name, value in named.items() if isinstance(value, torch.Tensor)
    }
    return ", ".join(f"{name} {shapes.get(name, '')}".strip() for name in named)
