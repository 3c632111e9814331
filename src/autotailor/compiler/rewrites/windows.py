"""Lets a batch of images pass where an exporter wrote the sizes of one image into a graph.

A constant of each window, such as Swin's position biases and masks, is added to windows that lie behind one another in
the axis of the batch. The constant holds for each image, so that the windows get an axis of their own:

    Add(x [batch x 4, c, h, w], b [4, 1, 1, 1])
        ->  Reshape(Add(Reshape(x, [batch, 4, c, h, w]), b), [batch x 4, c, h, w])

A Gather of the only element of an axis that a Reshape has made is the Reshape without the axis. It says nothing of
which axis of 1 holds the batch, as PyTorch's attention leaves it open:

    Gather(Reshape(x, [1, 1, 16]), 0, axis=0)  ->  Reshape(x, [1, 16])
"""

from dataclasses import replace

from autotailor.ir.dimensions.dimension import Batch, factors_of
from autotailor.ir.feature import Shape, freeze_attributes
from autotailor.ir.graph import Graph, Node
from autotailor.ir.propagation import propagate

BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div"})


def without_axes_of_one(graph: Graph) -> Graph:
    """The graph with every Gather of the only element of a Reshape's axis written as a Reshape."""
    return replace(graph, nodes=tuple(_reshaped(graph, node) for node in graph.nodes))


def _reshaped(graph: Graph, node: Node) -> Node:
    view = graph.producers.get(node.inputs[0]) if node.kind == "Gather" and not any(node.inputs[1:]) else None
    if view is None or view.kind != "Reshape" or any(view.inputs[1:]) or node.get("indices") not in (0, -1):
        return node
    axis = node.get("axis", 0)
    if graph.shapes[view.outputs[0]][axis] != 1:
        return node
    shape = freeze_attributes({"shape": graph.shapes[node.outputs[0]]})
    return Node(node.name, "Reshape", view.inputs[:1], node.outputs, shape)


def with_axes_of_windows(graph: Graph) -> Graph:
    """The graph with an axis for windows wherever a constant of each window meets windows of a batch."""
    suspects = [node for node in graph.nodes if _window_constant(graph, node)]
    if not suspects:
        return graph
    dimensions = propagate(graph).dimensions
    nodes: list[Node] = []
    shapes = dict(graph.shapes)
    for node in graph.nodes:
        constant = _window_constant(graph, node)
        (images,) = graph.activations(node) if constant else ("",)
        meets = constant and any(isinstance(factor, Batch) for factor in factors_of(dimensions[images][0]))
        nodes += _with_axis(graph, node, images, shapes) if meets else [node]
    return replace(graph, nodes=tuple(nodes), shapes=shapes)


def _window_constant(graph: Graph, node: Node) -> str:
    """The constant of an elementwise operator that has several elements along the first axis of what it meets."""
    constants = [name for name in node.inputs if name in graph.weights]
    if node.kind not in BROADCASTING or len(constants) != 1 or len(node.inputs) != 2:
        return ""
    shape, result = graph.weights[constants[0]].shape, graph.shapes[node.outputs[0]]
    (other,) = graph.activations(node)
    whole = len(shape) == len(result) and shape[0] > 1 and graph.shapes[other] == result
    return constants[0] if whole and shape[0] == result[0] else ""


def _with_axis(graph: Graph, node: Node, images: str, shapes: dict[str, Shape]) -> list[Node]:
    """The operator between two views; the shapes of new tensors are added."""
    output, shape = node.outputs[0], graph.shapes[images]
    parted, result = f"{output}:windows", f"{output}:changed"
    shapes[parted] = shapes[result] = (1, *shape)
    inputs = tuple(parted if name == images else name for name in node.inputs)
    return [
        Node(f"{node.name}:windows", "Reshape", (images,), (parted,), freeze_attributes({"shape": (1, *shape)})),
        replace(node, name=f"{node.name}:changed", inputs=inputs, outputs=(result,)),
        Node(node.name, "Reshape", (result,), (output,), freeze_attributes({"shape": shape})),
    ]
