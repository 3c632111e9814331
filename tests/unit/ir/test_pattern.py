"""Patterns: what they match, what they leave alone, and what they become."""

import numpy as np
import numpy.typing as npt
import pytest

from autotailor.ir.errors import GraphError
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.fusion.groups import fuse
from autotailor.ir.fusion.places import group_feature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.graph import Graph, Node
from autotailor.ir.pattern import Pattern, find_matches

SHAPE = (1, 4, 6)
SWISH = Pattern("Swish", "Mul(x, Sigmoid(x))")
GELU = Pattern("Gelu", "Mul(Mul(x, Add(Erf(Div(x, 1.41421356)), 1.0)), 0.5)")
LINEAR = Pattern("MatMul", "Add(MatMul(x, W), B)", vectors=("B",))


def graph(*nodes: tuple[str, tuple[str, ...], str], **weights: npt.ArrayLike) -> Graph:
    """Nodes (kind, inputs, output) that keep the shape; the last one writes the network's output."""
    made = tuple(Node(output, kind, inputs, (output,)) for kind, inputs, output in nodes)
    shapes = {"in": SHAPE, **{node.name: SHAPE for node in made}}
    constants = {name: np.array(value, dtype=np.float32) for name, value in weights.items()}
    return Graph("test", made, "in", (made[-1].name,), shapes, constants)


def kinds(of: Graph, *patterns: Pattern) -> list[str]:
    """Kinds of the fused operators."""
    return [group.producer.kind for group in fuse(of, FusionRules("test", patterns=patterns))]


@pytest.mark.parametrize("inputs", [("in", "s"), ("s", "in")], ids=["as written", "commuted"])
def test_a_subgraph_becomes_one_operator(inputs: tuple[str, str]) -> None:
    found = graph(("Sigmoid", ("in",), "s"), ("Mul", inputs, "m"), ("Relu", ("m",), "r"))
    assert kinds(found, SWISH) == ["Swish", "Relu"]
    (group, _) = fuse(found, FusionRules("test", patterns=(SWISH,)))
    assert [node.kind for node in group.members] == ["Sigmoid", "Mul"]
    feature = group_feature(found, group, dict(found.shapes))
    assert (feature.kind, feature.inputs, feature.outputs, feature.weights) == ("Swish", (SHAPE,), (SHAPE,), ())


def test_the_same_name_is_the_same_tensor() -> None:
    found = graph(("Relu", ("in",), "r"), ("Sigmoid", ("in",), "s"), ("Mul", ("r", "s"), "m"))
    assert kinds(found, SWISH) == ["Relu", "Sigmoid", "Mul"]


def test_what_others_read_stays() -> None:
    found = graph(("Sigmoid", ("in",), "s"), ("Mul", ("in", "s"), "m"), ("Add", ("m", "s"), "a"))
    assert kinds(found, SWISH) == ["Sigmoid", "Mul", "Add"]


@pytest.mark.parametrize(("half", "expected"), [(0.5, ["Gelu"]), (0.25, ["Div", "Erf", "Add", "Mul", "Mul"])])
def test_constants_have_values(half: float, expected: list[str]) -> None:
    found = graph(
        ("Div", ("in", "root"), "d"), ("Erf", ("d",), "e"), ("Add", ("e", "one"), "a"), ("Mul", ("in", "a"), "m"),
        ("Mul", ("m", "half"), "g"), root=1.4142135, one=1.0, half=half,
    )  # fmt: skip
    assert kinds(found, GELU) == expected


def test_constants_become_weights_in_the_order_of_the_expression() -> None:
    found = graph(("MatMul", ("in", "w"), "p"), ("Add", ("b", "p"), "a"), w=np.ones((6, 6)), b=np.ones(6))
    (group,) = fuse(found, FusionRules("test", patterns=(LINEAR,)))
    shapes = dict(found.shapes) | {"w": (6, 6), "b": (6,)}
    assert group_feature(found, group, shapes).weights == ((6, 6), (6,))


def test_a_matrix_is_no_vector() -> None:
    found = graph(("MatMul", ("in", "w"), "p"), ("Add", ("p", "b"), "a"), w=np.ones((6, 6)), b=np.ones((4, 6)))
    assert kinds(found, LINEAR) == ["MatMul", "Add"]


def test_names_in_attributes_become_attributes() -> None:
    pattern = Pattern("ChannelShuffle", "Reshape(Transpose(Reshape(x, shape=(_, group, _)), perm=(0, 2, 1)))")
    first = Node("a", "Reshape", ("in",), ("a",), freeze_attributes({"shape": (-1, 2, 3)}))
    nodes = (
        first,
        Node("b", "Transpose", ("a",), ("b",), freeze_attributes({"perm": (0, 2, 1)})),
        Node("c", "Reshape", ("b",), ("c",), freeze_attributes({"shape": (-1, 6)})),
    )
    found = Graph("test", nodes, "in", ("c",), dict.fromkeys(["in", "a", "b", "c"], (1, 6)), {})
    assert find_matches(found, [pattern])["c"].node.values == {"group": 2}


def test_the_earlier_pattern_holds() -> None:
    found = graph(("Sigmoid", ("in",), "s"), ("Mul", ("in", "s"), "m"))
    assert kinds(found, Pattern("Gated", "Mul(x, y)"), SWISH) == ["Sigmoid", "Gated"]
    assert kinds(found, SWISH, Pattern("Gated", "Mul(x, y)")) == ["Swish"]


@pytest.mark.parametrize("expression", ["Mul(x, ", "x"])
def test_expressions_that_are_none_are_named(expression: str) -> None:
    with pytest.raises(GraphError, match="pattern Broken"):
        _ = Pattern("Broken", expression).root
