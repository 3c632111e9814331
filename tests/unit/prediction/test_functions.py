"""Functions of SubNets, and what they may couple."""

import itertools

import numpy as np
import pytest

import autotailor
import networks
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.metric import Metric, Term
from autotailor.prediction.functions import contrasts, groups
from autotailor.profiling.runtimes.ncnn.fusion import NCNN_FUSION
from autotailor.profiling.runtimes.onnxruntime.fusion import ONNXRUNTIME_FUSION
from autotailor.profiling.runtimes.torch.runtime import TORCH_FUSION
from gated_space import SPACE


def edges(scopes: list[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Pairs of variables that stand in one scope."""
    return {tuple(sorted(pair)) for scope in scopes for pair in itertools.combinations(scope, 2)}


def no_drops(space) -> dict[str, np.ndarray]:
    return {v.name: np.zeros(len(v.choices)) for v in space}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_contrasts_are_orthogonal_and_have_no_mean(count: int) -> None:
    rows = contrasts(count)
    assert rows.shape == (count - 1, count)
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-12)
    products = rows @ rows.T / count
    np.testing.assert_allclose(products, np.diag(0.25 ** np.arange(count - 1)), atol=1e-12)


@pytest.mark.parametrize("fusion", [NCNN_FUSION, ONNXRUNTIME_FUSION, TORCH_FUSION], ids=lambda fusion: fusion.name)
@pytest.mark.parametrize("name", sorted(networks.SPACES))
def test_accuracy_couples_no_variables_that_latency_does_not_couple(name: str, fusion: FusionRules) -> None:
    """The elimination of both metrics then has the graph, and so the tables, of the elimination of latency alone."""
    net = autotailor.compile(networks.make(name), networks.SPACES[name], name=name, resolution=32)
    found = groups(net.space, no_drops(net.space), net.macs())
    accuracy = edges([term.scope for group in found for function in group.functions for term in function])
    gates = edges([(v.name, *v.gate.variables) for v in net.space if v.gate is not None])
    latency = net.latency(dict.fromkeys((f.id for f in net.operators(fusion=fusion)), 1.0), fusion)
    assert accuracy <= edges([term.scope for term in latency.terms]) | gates


def test_a_cost_without_couplings_admits_single_choices_alone() -> None:
    cost = Metric("macs", "M", SPACE, tuple(Term((v.name,), np.ones(len(v.choices))) for v in SPACE))
    names = [group.name for group in groups(SPACE, no_drops(SPACE), cost)]
    assert names == ["offset", "drops", "sizes", "choices"]


def test_a_pair_is_admitted_with_the_variables_of_its_gates() -> None:
    def pairs(*scope: str) -> set[tuple[str, ...]]:
        shape = [len(SPACE[name].choices) for name in scope]
        cost = Metric("macs", "M", SPACE, (Term(scope, np.ones(shape)),))
        found = {group.name: group for group in groups(SPACE, no_drops(SPACE), cost)}
        functions = found["pairs_with_resolution"].functions if "pairs_with_resolution" in found else ()
        return {function[0].variables for function in functions}

    assert pairs("resolution", "block3.expand_ratio") == set()
    assert pairs("resolution", "stage1.depth", "block3.expand_ratio") == {
        ("resolution", "stage1.depth"),
        ("resolution", "block3.expand_ratio"),
    }


def test_no_name_is_nearer_to_one_name_than_to_another() -> None:
    rows = contrasts(5, is_ordered=False)
    covariance = rows.T @ rows  # of the effects of the choices, with weights of one variance
    np.testing.assert_allclose(covariance, 5 * np.eye(5) - 1, atol=1e-9)


def test_the_weight_of_the_drops_is_1_beforehand(world) -> None:
    found = {group.name: group for group in groups(world.net.space, world.effects, world.cost)}
    assert {name for name, group in found.items() if group.mean} == {"drops"}
    subnet = world.net.smallest()
    expected = sum(
        world.effects[v.name][i] for v, i in zip(world.net.space, subnet.indices, strict=True) if subnet.opens(v.gate)
    )
    assert found["drops"].columns(world.net.space, subnet.to_array()[None])[0, 0] == pytest.approx(expected)
