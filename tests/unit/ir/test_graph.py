"""Graphs: what they refuse, who reads what, and where all paths meet."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.ir.errors import GraphError
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import SINK, Graph, Node

SHAPE = (1, 4)


def graph(*nodes: tuple[str, tuple[str, ...]], output: str = "", **weights: npt.ArrayLike) -> Graph:
    """Nodes (name, inputs), each of which writes a tensor of its own name; the last one writes the output."""
    made = tuple(Node(name, "Add", inputs, (name,)) for name, inputs in nodes)
    shapes = dict.fromkeys(["in", *(name for name, _ in nodes)], SHAPE)
    constants = {name: np.asarray(value, dtype=np.float32) for name, value in weights.items()}
    return Graph("test", made, "in", (output or made[-1].name,), shapes, constants)


def test_a_node_that_reads_what_nothing_before_it_writes_is_named() -> None:
    with pytest.raises(GraphError, match=r"node a reads \['b'\], which nothing before it writes"):
        graph(("a", ("in", "b")), ("b", ("a",)))


def test_an_output_that_no_node_writes_is_named() -> None:
    with pytest.raises(GraphError, match="no node writes its output 'z'"):
        graph(("a", ("in",)), output="z")


def test_weights_and_absent_inputs_are_no_activations() -> None:
    found = graph(("a", ("in", "", "w")), ("b", ("a", "a")), ("c", ("b", "a")), w=[1])
    assert found.activations(found.nodes[0]) == ("in",)
    assert {name: [n.name for n in nodes] for name, nodes in found.consumers.items()} == {
        "in": ["a"], "a": ["b", "c"], "b": ["c"],
    }  # fmt: skip
    assert {name: node.name for name, node in found.producers.items()} == {"a": "a", "b": "b", "c": "c"}


def test_several_outputs_have_an_end_in_common() -> None:
    made = graph(("a", ("in",)), ("b", ("a",)), ("c", ("a",)), ("d", ("c",)))
    found = replace(made, outputs=("b", "d"))
    assert found.closed.nodes[-1].inputs == ("b", "d")
    assert {name: found.post_dominators[name] for name in "abcd"} == {"a": SINK, "b": SINK, "c": "d", "d": SINK}
    assert made.closed is made
    with pytest.raises(GraphError, match=r"it returns 2 tensors \(b, d\), and one is expected here; set model\.output"):
        found.output  # noqa: B018
    assert Graph.restore(found.describe(), found.weights).outputs == ("b", "d")
    assert Graph.restore(made.describe(), made.weights).outputs == ("d",)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph of up to nine nodes in which each node but the last is read."""
    count = draw(st.integers(2, 9))
    reads = [{"in"} if reader == 0 else {f"n{draw(st.integers(0, reader - 1))}"} for reader in range(count)]
    for writer in range(count - 1):
        reads[draw(st.integers(writer + 1, count - 1))].add(f"n{writer}")
    return graph(*((f"n{i}", tuple(sorted(names))) for i, names in enumerate(reads)))


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_post_dominators_are_the_first_nodes_on_every_path_to_the_output(found: Graph) -> None:
    flow = nx.DiGraph((read, node.name) for node in found.nodes for read in found.activations(node) if read != "in")
    last = found.nodes[-1].name
    assert found.post_dominators.keys() == {node.name for node in found.nodes} - {last}
    for start, met in found.post_dominators.items():
        paths = [path[1:] for path in nx.all_simple_paths(flow, start, last)]
        common = set(paths[0]).intersection(*paths)
        assert met == next(name for name in paths[0] if name in common)


def test_what_is_described_is_restored() -> None:
    attributes = freeze_attributes({"pads": [0, 1], "mode": "reflect", "alpha": 0.5, "axis": -1})
    nodes = (Node("a", "Pad", ("in", "", "w"), ("a",), attributes), Node("b", "Relu", ("a",), ("b", "c")))
    whole = Graph("test", nodes, "in", ("c",), dict.fromkeys(("in", "a", "b", "c"), SHAPE), {"w": np.ones(4)})
    again = Graph.restore(whole.describe(), whole.weights)
    assert (again.name, again.nodes, again.input, again.output, again.shapes) == (
        whole.name, whole.nodes, whole.input, whole.output, whole.shapes,
    )  # fmt: skip


def test_other_weights_replace_those_of_their_names_alone() -> None:
    whole = graph(("a", ("in", "v", "w")), v=[1], w=[2])
    other = whole.with_weights({"w": np.array([3.0])})
    assert [float(other.weights[name][0]) for name in "vw"] == [1, 3]
    assert float(whole.weights["w"][0]) == 2
    assert other.nodes is whole.nodes


def test_attributes_are_set_and_left_out_in_any_order() -> None:
    node = Node("a", "Conv", ("in",), ("a",), freeze_attributes({"group": 1, "pads": [1, 1]}))
    for first, second in itertools.permutations([{"strides": [2, 2]}, {"group": 4}]):
        changed = node.with_attributes(**first).with_attributes(**second)
        assert changed.attributes == (("group", 4), ("pads", (1, 1)), ("strides", (2, 2)))
        assert changed.without_attributes("pads", "none").values == {"group": 4, "strides": (2, 2)}
    assert node.get("group") == 1
    assert node.get("dilations", (1,)) == (1,)
