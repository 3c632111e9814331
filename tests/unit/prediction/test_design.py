"""Which SubNets are evaluated first."""

import numpy as np
import pytest

from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction.design import BANDS, DRAWN, d_optimal, offer
from autotailor.prediction.evidence import MISFIT, TYPICAL
from autotailor.prediction.functions import groups
from gated_space import SPACE, all_subnets


def information(space, found, rows: np.ndarray) -> float:
    """Logarithm of the determinant of the prior covariance of evaluations."""
    columns = np.concatenate([g.columns(space, rows) * np.sqrt(TYPICAL[g.name]) for g in found], axis=1)
    return float(np.linalg.slogdet(columns @ columns.T / TYPICAL[MISFIT] + np.eye(len(rows)))[1])


@pytest.fixture(scope="module")
def offered(world):
    return offer(world.net.space, 24, set(world.singles()), np.random.default_rng(0))


@pytest.fixture(scope="module")
def designed(world, offered):
    found = groups(world.net.space, world.effects, world.cost)
    return found, d_optimal(found, world.cost, world.singles(), offered, 24)


def test_random_subnets_are_offered_but_those_that_are_left_out(world, offered) -> None:
    space = world.net.space
    assert len(set(offered)) == 24 * DRAWN
    assert not set(offered) & set(world.singles())
    again = offer(space, 24, {*world.singles(), *offered[:5]}, np.random.default_rng(0))
    assert not set(again) & set(offered[:5])
    counts = np.bincount(stack(offered)[:, space.positions["resolution"]])
    assert counts.min() > 0.2 * len(offered)


def test_chosen_subnets_are_offered_ones_spread_over_the_cost(world, designed, offered) -> None:
    _, chosen = designed
    assert len(set(chosen)) == 24
    assert set(chosen) <= set(offered)
    limits = np.quantile(world.cost.predict(stack(offered)), np.linspace(0, 1, BANDS + 1))
    limits[-1] += 1
    counts, _ = np.histogram(world.cost.predict(stack(chosen)), limits)
    assert (counts >= 2).all()


def test_chosen_subnets_tell_more_than_random_ones(world, designed) -> None:
    found, chosen = designed
    known = stack(world.singles())
    ours = information(world.net.space, found, np.concatenate([known, stack(chosen)]))
    for seed in range(5):
        drawn = stack(sample_distinct(world.net.space, 24, np.random.default_rng(seed)))
        assert ours > information(world.net.space, found, np.concatenate([known, drawn]))


def test_a_small_space_gives_all_it_has() -> None:
    cost = Metric("macs", "M", SPACE, tuple(Term((v.name,), np.arange(1.0, 1 + len(v.choices))) for v in SPACE))
    found = groups(SPACE, {v.name: np.zeros(len(v.choices)) for v in SPACE}, cost)
    known = all_subnets()[:1]
    offered = offer(SPACE, 999, set(known), np.random.default_rng(0))
    assert set(d_optimal(found, cost, known, offered, 999)) == set(all_subnets()) - set(known)
    assert d_optimal(found, cost, known, offered, 0) == []
    assert d_optimal(found, cost, known, [], 5) == []
