"""Subgraphs that run as one function: which they are, that they compute the same, and when they stay apart."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F

from autotailor.ir.execution.kernels import Kernels
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.patterns import ATTENTION
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node

Line = tuple[str, tuple[str, ...], str]
SHAPE = (1, 2, 5, 4)
GELU: list[Line] = [
    ("Div", ("in", "root"), "d"), ("Erf", ("d",), "e"), ("Add", ("e", "one"), "a"), ("Mul", ("in", "a"), "m"),
    ("Mul", ("m", "half"), "g"),
]  # fmt: skip
BEGIN: list[Line] = [("Relu", ("in",), "q"), ("Sigmoid", ("in",), "k"), ("Tanh", ("in",), "v")]
END: list[Line] = [("Softmax", ("s",), "p"), ("MatMul", ("p", "v"), "o")]
ATTENTIONS: dict[str, list[Line]] = {
    "both scaled": [
        ("Transpose", ("k",), "t"), ("Mul", ("q", "root"), "a"), ("Mul", ("t", "root"), "b"),
        ("MatMul", ("a", "b"), "s"),
    ],
    "query scaled": [("Transpose", ("k",), "t"), ("Mul", ("q", "half"), "a"), ("MatMul", ("a", "t"), "s")],
    "scores scaled": [("Transpose", ("k",), "t"), ("MatMul", ("q", "t"), "a"), ("Mul", ("a", "half"), "s")],
    "scores divided": [("Transpose", ("k",), "t"), ("MatMul", ("q", "t"), "a"), ("Div", ("a", "root"), "s")],
}  # fmt: skip
FACTORS = {"both scaled": 2.0, "query scaled": 0.5, "scores scaled": 0.5, "scores divided": 2**-0.5}
ATTRIBUTES = {"Transpose": {"perm": (0, 1, 3, 2)}, "Softmax": {"axis": -1}}


def graph(lines: list[Line], **weights: npt.ArrayLike) -> Graph:
    """Lines of (kind, inputs, output); the last one writes the network's output."""
    nodes = tuple(Node(o, kind, i, (o,), freeze_attributes(ATTRIBUTES.get(kind, {}))) for kind, i, o in lines)
    constants = {"root": 2**0.5, "one": 1.0, "half": 0.5, **weights}
    arrays = {name: np.array(value, dtype=np.float32) for name, value in constants.items()}
    shapes = dict.fromkeys(["in", *(node.name for node in nodes)], SHAPE)
    return Graph("test", nodes, "in", (nodes[-1].name,), shapes, arrays)


def kinds(of: Graph) -> list[str]:
    return [node.kind for node in Kernels(of).joined(of.nodes)]


def assert_computes(of: Graph, expected: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(2, *SHAPE[1:], generator=torch.Generator().manual_seed(0))
    wanted = expected(x)
    torch.testing.assert_close(GraphModule(of)(x).view(wanted.shape), wanted, rtol=1e-5, atol=1e-6)


def test_gelu_runs_as_one_function() -> None:
    found = graph(GELU)
    assert kinds(found) == ["Gelu"]
    assert_computes(found, F.gelu)


@pytest.mark.parametrize("form", ATTENTIONS)
def test_attention_runs_as_one_function_with_the_factor_of_its_scores(form: str) -> None:
    found = graph(BEGIN + ATTENTIONS[form] + END)
    assert kinds(found) == ["Relu", "Sigmoid", "Tanh", ATTENTION]

    def expected(x: torch.Tensor) -> torch.Tensor:
        scores = x.relu() @ x.sigmoid().mT * FACTORS[form]
        return scores.softmax(-1) @ x.tanh()

    assert_computes(found, expected)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (5, 1), (1,)], ids=str)
def test_a_product_and_its_bias_run_together_whatever_axis_the_bias_has(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    matrix, bias = rng.normal(size=(4, 5)), rng.normal(size=shape)
    found = graph([("MatMul", ("in", "W"), "p"), ("Add", ("B", "p"), "s")], W=matrix, B=bias)
    assert kinds(found) == ["MatMul"]
    assert_computes(found, lambda x: x @ torch.tensor(matrix).float() + torch.tensor(bias).float())


def test_a_tensor_that_must_be_computed_keeps_its_subgraph_apart() -> None:
    found = graph(GELU)
    assert len(Kernels(found).joined(found.nodes, keep=("e",))) == 5
    assert len(Kernels(found).joined(found.nodes, keep=("g",))) == 1


def test_a_subgraph_of_which_a_part_was_removed_stays_apart() -> None:
    found = graph([("Relu", ("in",), "r"), ("MatMul", ("r", "W"), "p"), ("Add", ("p", "B"), "s")], W=np.eye(4), B=[0.0])
    assert kinds(found) == ["Relu", "MatMul"]
    relu, _, total = found.nodes
    without = (relu, Node(total.name, "Add", ("r", "B"), total.outputs))
    assert Kernels(found).joined(without) == without


def test_the_function_reads_around_a_removed_block() -> None:
    found = graph([("Relu", ("in",), "r"), *[(k, tuple("r" if i == "in" else i for i in n), o) for k, n, o in GELU]])
    kept = [Node(n.name, n.kind, tuple("in" if i == "r" else i for i in n.inputs), n.outputs) for n in found.nodes[1:]]
    (joined,) = Kernels(found).joined(kept)
    assert (joined.kind, joined.inputs, joined.outputs) == ("Gelu", ("in",), ("g",))
