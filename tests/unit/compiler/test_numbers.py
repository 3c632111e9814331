"""Operators of a compiled network against ONNX Runtime: rules that compute other numbers are named, rounding is not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import autotailor
import networks
from autotailor.compiler import numbers
from autotailor.compiler.numbers import check_numbers
from autotailor.ir.errors import GraphError
from autotailor.ir.execution import onnx_writer
from autotailor.ir.graph import Node
from autotailor.ir.operators.pointwise.elementwise import ElementwiseRule
from autotailor.ir.operators.rule import register, rules
from onnx_text import HEAD, KERNEL, model_of


def registered(monkeypatch: pytest.MonkeyPatch, factor: float, offset: float = 0.0) -> None:
    """A rule for the arc tangent, which is forgotten after the test."""
    monkeypatch.setattr(rules, "_rules", dict(rules._rules))

    class AtanRule(ElementwiseRule):
        kinds = ("Atan",)

        def call(self, node: Node, arguments: Sequence[Any]) -> torch.Tensor:
            return factor * torch.atan(arguments[0]) + offset

    register(AtanRule)


@pytest.mark.parametrize("name", [*networks.NETWORKS, *networks.MORE_NETWORKS])
def test_the_rules_of_this_package_compute_what_onnx_runtime_computes(name: str) -> None:
    check_numbers(autotailor.compile(networks.make(name), resolution=32))


def test_an_operator_without_a_rule_is_compared_too() -> None:
    check_numbers(autotailor.compile(networks.Waves(), resolution=16))


@pytest.mark.parametrize(("factor", "offset"), [(1.5, 0.0), (-1.0, 0.0), (1.0, 0.01), (float("nan"), 0.0)])
def test_a_rule_that_computes_other_numbers_is_named(
    factor: float, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(monkeypatch, 1.0)
    net = autotailor.compile(networks.Waves(), resolution=16)
    check_numbers(net)
    monkeypatch.undo()
    registered(monkeypatch, factor, offset)
    said = r"graph waves: Atan /\w+ computes other numbers in PyTorch .* correct `call` of the rule for Atan"
    with pytest.raises(GraphError, match=said):
        check_numbers(net)


def test_rounding_is_no_other_number(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, 1 + 1e-5)
    check_numbers(autotailor.compile(networks.Waves(), resolution=16))


def pool_behind_zeros(pool: str) -> autotailor.SuperNet:
    """A Pad in front of a pooling; optimised, ONNX Runtime makes it the pooling's own pads, which differ from zeros."""
    weights = {"w": -np.abs(KERNEL), "fc": np.ones((5, 4), np.float32), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    bright = "s = Softplus (x)  c = Conv (s, w)"
    return autotailor.compile(model_of(f"{bright}  q = Pad (c, pads)  t = {pool} (q)  {HEAD}", weights), {})


@pytest.mark.parametrize(
    "pool", ["MaxPool <kernel_shape = [3, 3]>", "AveragePool <kernel_shape = [1, 1], strides = [2, 2]>"]
)
def test_a_network_that_optimisation_would_break_is_written_so_that_it_does_not(
    pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = pool_behind_zeros(pool)
    check_numbers(net)
    monkeypatch.setattr(onnx_writer, "unfused", lambda nodes: nodes)
    with pytest.raises(GraphError, match=r"optimisation, with which exports run|cannot run it optimised"):
        check_numbers(net)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 4.0], [2.0, 4.0], 0.25),
        ([-INF, NAN, 1.0], [-INF, NAN, 2.0], 0.5),
        ([INF, 1.0], [-INF, 1.0], INF),
        ([NAN, 1.0], [1.0, 1.0], INF),
        ([1.0, 1.0], [NAN, 1.0], INF),
        ([1.0], [1.0, 1.0], INF),
        ([True, False], [True, True], 1.0),
        ([3, 4], [3, 4], 0.0),
    ],
)
def test_differences_are_shares_of_the_largest_number(
    found: list[float], expected: list[float], difference: float
) -> None:
    assert numbers._difference(torch.tensor(found), np.array(expected, torch.tensor(found).numpy().dtype)) == difference


def test_a_network_with_alternatives_is_checked_and_written_as_it_was_given(tmp_path: Path) -> None:
    network = networks.make("resnet")
    space = {**networks.SPACES["resnet"], "alternatives": {"low_rank": [0.5], "depthwise": True}}
    net = autotailor.compile(network, space, resolution=32)
    check_numbers(net)
    net.export_onnx(net.largest(), tmp_path / "a.onnx")
    plain = autotailor.compile(network, networks.SPACES["resnet"], resolution=32)
    plain.export_onnx(plain.largest(), tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
