"""A BatchNorm that was frozen into a gain and a shift is folded into its convolution, and can then be put back.

    gain (w x + b) + shift        becomes        (gain w) x + (gain b + shift)

Torchvision's detectors have such norms (``FrozenBatchNorm2d``). Runtimes compute the two operators for themselves, and
a SubNet could not have statistics of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.graph import Graph, Node

Array = npt.NDArray[Any]


def with_folded_norms(graph: Graph) -> tuple[Graph, frozenset[str]]:
    """The graph whose convolutions have the frozen norms behind them in their weights.

    Returns:
        The graph, and the tensors behind those convolutions.
    """
    weights, made, gone = dict(graph.weights), dict[str, Node](), set[str]()
    for node in graph.nodes:
        if node.kind != "Conv" or graph.uses.get(node.inputs[1]) != 1 or node.inputs[1] not in weights:
            continue
        times, plus = _follower(graph, node, "Mul"), None
        if times is not None:
            plus = _follower(graph, times[0], "Add")
        if times is None or plus is None:
            continue
        weight, gain, name = weights[node.inputs[1]], times[1], f"{node.name}/frozen"
        bias = weights[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else np.zeros(len(weight))
        weights[f"{name}.weight"] = (weight * gain.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
        weights[f"{name}.bias"] = (bias * gain + plus[1]).astype(np.float32)
        inputs = (node.inputs[0], f"{name}.weight", f"{name}.bias")
        made[node.name] = replace(node, inputs=inputs, outputs=plus[0].outputs)
        gone |= {times[0].name, plus[0].name}
    nodes = tuple(made.get(node.name, node) for node in graph.nodes if node.name not in gone)
    read = {name for node in nodes for name in node.inputs}
    kept = {name: array for name, array in weights.items() if name in read}
    return replace(graph, nodes=nodes, weights=kept), frozenset(node.outputs[0] for node in made.values())


def _follower(graph: Graph, node: Node, kind: str) -> tuple[Node, Array] | None:
    """The only reader of a node, where that has a kind and a constant for each channel; and these constants ``[c]``."""
    output = node.outputs[0]
    readers = graph.consumers.get(output, ())
    if len(readers) != 1 or readers[0].kind != kind or output in graph.outputs:
        return None
    constants = [graph.weights[name] for name in readers[0].inputs if name in graph.weights]
    channels, rank = graph.shapes[output][1], len(graph.shapes[output])
    if len(constants) != 1 or constants[0].size != channels or constants[0].ndim < rank - 1:
        return None
    array: Array = constants[0].astype(np.float64)
    return (readers[0], array.ravel()) if array.shape[-rank + 1] == channels else None
