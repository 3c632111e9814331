"""Which constants of a graph training may change; a graph does not say which of them were parameters.

Training leaves alone:

- statistics, integers, constants of static operators, and single numbers but the slope of a PReLU and what a module
  of PyTorch has as a parameter (GeM's power, ReZero's scale);
- what a module has as a buffer: coordinates, sinusoidal positions;
- what the image meets before anything weighs it: means and deviations of a network that standardises by itself;
- depthwise kernels that are the same for all channels: blur in front of strides, which nobody has learnt.
"""

from __future__ import annotations

import numpy as np

from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import rules

_STANDARDISING = frozenset({"Add", "Sub", "Mul", "Div"})
_PASSING = frozenset({"Cast", "Clip", "Concat", "Gather", "Identity", "Slice", "Split", "Transpose"})


def untrainable(graph: Graph) -> set[str]:
    """Names of the constants that training leaves alone."""
    names = {name for name, w in graph.weights.items() if not np.issubdtype(w.dtype, np.floating) or w.size == 1}
    slopes = {node.inputs[1] for node in graph.nodes if node.kind == "PRelu"}
    names -= {
        name for name in (slopes | graph.parameters) & names if np.issubdtype(graph.weights[name].dtype, np.floating)
    }
    for node in graph.nodes:
        rule = rules.find(node.kind)
        if rule is None:
            names.update(name for name in node.inputs if name in graph.weights)
        else:
            names.update(node.inputs[i] for i in rule.statistics)
        if _is_blur(graph, node):
            names.add(node.inputs[1])
    return names | graph.buffers | _preprocessing(graph)


def _preprocessing(graph: Graph) -> set[str]:
    """Constants that the image is standardised with."""
    images, names = {graph.input}, set[str]()
    for node in graph.nodes:
        read = graph.activations(node)
        if not read or not images.issuperset(read) or node.kind not in _STANDARDISING | _PASSING:
            continue
        images.update(node.outputs)
        if node.kind in _STANDARDISING:
            names.update(name for name in node.inputs if name in graph.weights)
    return names


def _is_blur(graph: Graph, node: Node) -> bool:
    """Whether a depthwise convolution has the same kernel of several pixels for each of several channels."""
    weight = graph.weights.get(node.inputs[1]) if node.kind == "Conv" else None
    if weight is None or len(weight) < 2 or weight.shape[1] != 1 or node.get("group", 1) != len(weight):
        return False
    return weight[0].size > 1 and bool(weight[0].any()) and bool((weight == weight[:1]).all())
