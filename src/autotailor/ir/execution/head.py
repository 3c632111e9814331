"""What a network returns, and of a classifier the final activation and the tensor of its logits.

Cross entropy and distillation want logits. A network that ends in Softmax, LogSoftmax or Sigmoid therefore runs up to
its logits while it is trained. A SubNet that is exported, listed or measured has the activation, as the original has.

    logits -> Softmax -> output        logits -> Softmax -> Reshape -> output        logits -> Softmax -> Log -> output
    logits -> Softmax -> Mul 100 -> output

The activation follows from the graph, so that no file has to record it.
"""

import math
from dataclasses import dataclass

from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph, Node

SOFTMAX, LOG_SOFTMAX, SIGMOID = "Softmax", "LogSoftmax", "Sigmoid"
MAPS = frozenset({"Gemm", "MatMul", "Conv"})
VIEWS = frozenset({"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Cast"})


@dataclass(frozen=True)
class Head:
    """The end of a network.

    Attributes:
        outputs: names of the tensors that are returned: of a classifier that which holds one logit for each class,
            possibly with further axes of 1.
        activation: ``Softmax``, ``LogSoftmax`` or ``Sigmoid``; empty where the network returns logits.
        nodes: names of the nodes from the logits to the output.
    """

    outputs: tuple[str, ...]
    activation: str = ""
    nodes: frozenset[str] = frozenset()

    @property
    def independent(self) -> bool:
        """Whether each class has a probability of its own, instead of a share of one."""
        return self.activation == SIGMOID


def find_head(graph: Graph) -> Head:
    """The final activation of a graph with one output, looked for behind views and multiples of the output."""
    if len(graph.outputs) > 1:
        return Head(graph.outputs)
    name, passed, logarithm = graph.output, list[str](), False
    while (node := graph.producers.get(name)) is not None and _is_row(graph.shapes[name]):
        passed.append(node.name)
        source = node.inputs[0]
        if node.kind in VIEWS and len(node.outputs) == 1:
            name = source
        elif node.kind == "Log" and not logarithm:
            name, logarithm = source, True
        elif (scaled := _scaled(node, graph)) and not logarithm:
            name = scaled
        elif _is_over_classes(node, graph) and not (logarithm and node.kind != SOFTMAX):
            return Head((source,), LOG_SOFTMAX if logarithm else node.kind, frozenset(passed))
        else:
            break
    return Head(graph.outputs)


def find_features(graph: Graph) -> str:
    """The tensor that the last map of a graph with one output reads, behind views of the logits; "" where none does."""
    name, *others = find_head(graph).outputs
    while not others and (node := graph.producers.get(name)) is not None and len(read := graph.activations(node)) == 1:
        if node.kind in MAPS:
            return read[0]
        if node.kind not in VIEWS | {"Add"}:  # a bias may be added by a node of its own
            break
        name = read[0]
    return ""


def _scaled(node: Node, graph: Graph) -> str:
    """What a node multiplies or divides by one positive constant, as percentages are; "" for any other node."""
    read, constants = graph.activations(node), [graph.weights[n] for n in node.inputs if n in graph.weights]
    divides = node.kind == "Div" and node.inputs[0] in graph.weights
    if node.kind not in ("Mul", "Div") or divides or len(read) != 1 or len(constants) != 1:
        return ""
    return read[0] if constants[0].size == 1 and constants[0].item() > 0 else ""


def _is_over_classes(node: Node, graph: Graph) -> bool:
    """Whether a node is an activation of a whole row of logits."""
    shape = graph.shapes[node.outputs[0]]
    if node.kind == SIGMOID:
        return node.inputs[0] in graph.shapes
    return node.kind in (SOFTMAX, LOG_SOFTMAX) and shape[node.get("axis", -1)] == math.prod(shape)


def _is_row(shape: Shape) -> bool:
    """Whether a tensor has one number for each class and nothing else."""
    return max(shape, default=0) == math.prod(shape)
