"""Folds a Pad of zeros into the windows that read it, so that "SAME" pads and pads of a module's own hide no kernel.

    Conv(Pad(x, p)) = Conv(x) with its own pads plus p                    a convolution reads zeros beyond its image
    AveragePool(Pad(x, p)) = AveragePool(x) with these pads, counted      where it counts the pads that it has itself
    MaxPool(Pad(x, p)) = MaxPool(x) with these pads                       where no x is below zero

A pooling keeps the Pad where one of its windows would hold pads alone, which runtimes refuse, and where pads before and
behind an axis would differ, which ncnn's converter misreads. MaxPool keeps the Pad behind operators that may write
negative numbers, because its own pads are minus infinity.
"""

from dataclasses import replace

from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.layout.padding import pads_of
from autotailor.ir.operators.windows.window import window_attributes

NOT_NEGATIVE = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Softplus", "Abs"})
PASSING = frozenset({"MaxPool", "AveragePool", "Dropout", "Identity"})  # not negative where what they read is not


def without_pads(graph: Graph) -> Graph:
    """The graph with every Pad of zeros folded into those readers that compute the same without it."""
    sources: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        folded = node
        while (pad := graph.producers.get(folded.inputs[0] if folded.inputs else "")) is not None:
            merged = _folded(graph, pad, folded)
            if merged is None:
                break
            folded, sources[pad.outputs[0]] = merged, pad.name
        nodes.append(folded)
    if not sources:
        return graph
    read = {*graph.outputs, *(name for node in nodes for name in node.inputs)}
    while gone := {n.name for n in nodes if n.kind == "Pad" and n.outputs[0] in sources and n.outputs[0] not in read}:
        nodes = [node for node in nodes if node.name not in gone]
        read = {*graph.outputs, *(name for node in nodes for name in node.inputs)}
    left = {graph.input, *(name for node in nodes for name in node.outputs)}
    return replace(graph, nodes=tuple(nodes), shapes={n: s for n, s in graph.shapes.items() if n in left})


def _folded(graph: Graph, pad: Node, reader: Node) -> Node | None:
    """A window that reads what a Pad reads, with the Pad's amounts among its own; None where it would be another."""
    amounts = _amounts(graph, pad)
    if amounts is None or not _reads_zeros(graph, pad, reader, amounts):
        return None
    kernel = graph.weights[reader.inputs[1]].shape[2:] if reader.kind == "Conv" else reader.get("kernel_shape")
    own = window_attributes(reader, kernel).pads
    total = tuple(a + b for a, b in zip(own, amounts, strict=True))
    rank = len(kernel)
    alone = any(p >= k for p, k in zip(total, kernel * 2, strict=True))
    if reader.kind != "Conv" and (alone or total[:rank] != total[rank:]):
        return None
    counted = {"count_include_pad": 1} if reader.kind == "AveragePool" else {}
    return replace(reader.with_attributes(pads=total, **counted), inputs=(pad.inputs[0], *reader.inputs[1:]))


def _amounts(graph: Graph, pad: Node) -> tuple[int, ...] | None:
    """Zeros before and behind each axis but batch and channels; None for anything but a Pad of such zeros."""
    if pad.kind != "Pad" or any(pad.inputs[1:]) or pad.inputs[0] not in graph.shapes:
        return None
    if pad.get("mode", "constant") != "constant" or float(pad.get("value", 0.0)) != 0.0:
        return None
    begins, ends = pads_of(pad, len(graph.shapes[pad.inputs[0]]))
    if any((*begins[:2], *ends[:2])) or min((*begins, *ends)) < 0:
        return None
    return (*begins[2:], *ends[2:])


def _reads_zeros(graph: Graph, pad: Node, reader: Node, amounts: tuple[int, ...]) -> bool:
    """Whether a window's own pads would say the same as zeros."""
    if reader.kind == "Conv":
        return reader.inputs[1] in graph.weights and pad.outputs[0] not in reader.inputs[1:]
    if any(reader.outputs[1:]) or reader.get("ceil_mode", 0):
        return False
    if reader.kind == "AveragePool":
        return bool(reader.get("count_include_pad", 0)) or not any(reader.get("pads") or ())
    return reader.kind == "MaxPool" and _is_not_negative(graph, pad.inputs[0])


def _is_not_negative(graph: Graph, name: str) -> bool:
    """Whether no number of a tensor can be below zero, which its operator tells."""
    node = graph.producers.get(name)
    if node is None:
        return False
    if node.kind in PASSING:
        return all(_is_not_negative(graph, source) for source in graph.activations(node))
    low = node.get("min")
    return node.kind in NOT_NEGATIVE or (node.kind == "Clip" and low is not None and low >= 0)
