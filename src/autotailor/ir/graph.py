"""The computation graph that the IR reads: nodes, tensors by name, and weights, free of any framework.

A constant that *shapes* an operator (the axes of a reduction, the limits of a Clip, the target of a Reshape) is an
attribute of the operator's node; every other constant is a weight. Names of tensors are unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy.typing as npt

from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Attributes, Shape, freeze_attributes
from autotailor.ir.given import Given

Weights = Mapping[str, npt.NDArray[Any]]
INPUT, OUTPUT = "input", "output"
"""What the tensors of a network are called where it does not say."""
SINK = ":outputs"
"""The kind, the name and the result of the node that stands behind all outputs of a graph with several."""
MIXING = ("Conv", "Gemm", "MatMul")
"""Kinds of operators whose second input may be a weight that mixes channels."""


@dataclass(frozen=True)
class Node:
    """One operator of the graph; an absent optional input is the empty string."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes = ()

    @cached_property
    def values(self) -> dict[str, Any]:
        """Attributes by name."""
        return dict(self.attributes)

    def get(self, name: str, default: Any = None) -> Any:
        """Value of one attribute, or the default."""
        for key, value in self.attributes:  # ``torch.compile`` cannot trace the lock of a cached property
            if key == name:
                return value
        return default

    def with_attributes(self, **changes: Any) -> Node:
        """The node with some attributes set."""
        return replace(self, attributes=freeze_attributes({**self.values, **changes}))

    def without_attributes(self, *names: str) -> Node:
        """The node without some attributes."""
        return replace(self, attributes=tuple((k, v) for k, v in self.attributes if k not in names))


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: one image in, one or several tensors out.

    Attributes:
        name: of the network.
        nodes: in topological order.
        input: tensor name.
        outputs: tensor names, in the order in which the network returns the tensors.
        shapes: meta shape of every activation, batch first (batch 1).
        weights: constant tensors by name.
        given: how the file that the network came from takes its image.
        parameters, buffers: names of the constants of which a module of PyTorch has said what they are; the others may
            be either.
    """

    name: str
    nodes: tuple[Node, ...]
    input: str
    outputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    weights: Weights
    given: Given = field(default_factory=Given)
    parameters: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        tensors = {self.input, "", *self.weights}
        for node in self.nodes:
            missing = [name for name in node.inputs if name not in tensors]
            if missing:
                raise GraphError(f"graph {self.name}: node {node.name} reads {missing}, which nothing before it writes")
            tensors.update(node.outputs)
        if not self.outputs or isinstance(self.outputs, str):
            raise GraphError(f"graph {self.name}: its outputs are {self.outputs!r}, expected a tuple of tensor names")
        for output in self.outputs:
            if output not in tensors:
                raise GraphError(f"graph {self.name}: no node writes its output {output!r}")

    @property
    def output(self) -> str:
        """The tensor that the network returns.

        Raises:
            GraphError: the network returns several.
        """
        if len(self.outputs) != 1:
            raise GraphError(
                f"graph {self.name}: it returns {len(self.outputs)} tensors ({', '.join(self.outputs)}), and one is "
                f"expected here; set model.output (inspect: --output) to the name of one"
            )
        return self.outputs[0]

    @cached_property
    def closed(self) -> Graph:
        """The graph with one node behind all outputs, where there are several: all paths then have an end in common."""
        if len(self.outputs) == 1:
            return self
        nodes = (*self.nodes, Node(SINK, SINK, self.outputs, (SINK,)))
        return replace(self, nodes=nodes, outputs=(SINK,), shapes={**self.shapes, SINK: ()})

    def activations(self, node: Node) -> tuple[str, ...]:
        """Inputs of a node without the weights among them."""
        return tuple(name for name in node.inputs if name and name not in self.weights)

    @cached_property
    def consumers(self) -> dict[str, tuple[Node, ...]]:
        """Tensor name to the nodes that read the tensor, in order; a node that reads a tensor twice is listed once."""
        readers: dict[str, dict[str, Node]] = {}
        for node in self.nodes:
            for name in self.activations(node):
                readers.setdefault(name, {})[node.name] = node
        return {name: tuple(nodes.values()) for name, nodes in readers.items()}

    @cached_property
    def producers(self) -> dict[str, Node]:
        """Tensor name to the node that writes the tensor."""
        return {name: node for node in self.nodes for name in node.outputs}

    @cached_property
    def uses(self) -> Counter[str]:
        """Tensor or weight name to the number of inputs that name it."""
        return Counter(name for node in self.nodes for name in node.inputs)

    @cached_property
    def post_dominators(self) -> dict[str, str]:
        """Node name to the name of the first node that every path from the node to an output passes.

        Where there are several outputs, the paths end in the node that ``closed`` has behind all of them.
        """
        if self.closed is not self:
            return self.closed.post_dominators
        flow: nx.DiGraph[str] = nx.DiGraph()
        for node in self.nodes:
            flow.add_node(node.name)
            for name in self.activations(node):
                if name in self.producers:
                    flow.add_edge(node.name, self.producers[name].name)
        last = self.producers[self.output].name
        return {n: d for n, d in nx.immediate_dominators(flow, last).items() if d is not None}

    def describe(self) -> dict[str, Any]:
        """Plain data without the weights, for saving."""
        return {
            "name": self.name,
            "nodes": [[n.name, n.kind, list(n.inputs), list(n.outputs), n.values] for n in self.nodes],
            "input": self.input,
            **({"output": self.output} if len(self.outputs) == 1 else {"outputs": list(self.outputs)}),
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            **({"given": asdict(self.given)} if self.given else {}),
            **({"parameters": sorted(self.parameters)} if self.parameters else {}),
            **({"buffers": sorted(self.buffers)} if self.buffers else {}),
        }

    @classmethod
    def restore(cls, data: Mapping[str, Any], weights: Weights) -> Graph:
        """Reads ``describe``."""
        nodes = tuple(
            Node(name, kind, tuple(inputs), tuple(outputs), freeze_attributes(attributes))
            for name, kind, inputs, outputs, attributes in data["nodes"]
        )
        shapes = {name: tuple(shape) for name, shape in data["shapes"].items()}
        given = Given(**data.get("given", {}))
        kinds = (frozenset(data.get(kind, ())) for kind in ("parameters", "buffers"))
        outputs = tuple(data["outputs"] if "outputs" in data else [data["output"]])
        return cls(data["name"], nodes, data["input"], outputs, shapes, weights, given, *kinds)

    def with_weights(self, weights: Weights) -> Graph:
        """The same graph over other weights."""
        return replace(self, weights={**self.weights, **weights})


def reading_axis(node: Node) -> int:
    """The axis of the weight of a node of a kind in ``MIXING`` along which the node reads its input."""
    return 1 if node.kind == "Conv" or node.get("transB", 0) else 0
