"""Which SubNets are evaluated first."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction.design import BANDS, d_optimal, ends, pool
from autotailor.prediction.evidence import MISFIT, TYPICAL
from autotailor.prediction.functions import groups
from gated_space import SPACE, all_subnets


def information(space, found, rows: np.ndarray) -> float:
    """Logarithm of the determinant of the prior covariance of evaluations."""
    columns = np.concatenate([g.columns(space, rows) * np.sqrt(TYPICAL[g.name]) for g in found], axis=1)
    return float(np.linalg.slogdet(columns @ columns.T / TYPICAL[MISFIT] + np.eye(len(rows)))[1])


@pytest.fixture(scope="module")
def designed(world):
    space, found = world.net.space, groups(world.net.space, world.effects, world.cost)
    known = stack(world.singles())
    return found, known, d_optimal(space, found, world.cost, known, 24, np.random.default_rng(0))


def test_the_ends_are_the_largest_and_the_smallest_at_each_resolution(world) -> None:
    found = ends(world.net.space)
    assert len(found) == 2 * len(world.net.space["resolution"].choices)
    assert {world.net.largest(), world.net.smallest()} <= set(found)


def test_the_pool_has_distinct_canonical_subnets_from_small_to_large(world) -> None:
    rows = pool(world.net.space, np.random.default_rng(0), 500)
    assert len(np.unique(rows, axis=0)) == len(rows)
    cost = world.cost.predict(rows)
    low, high = world.cost.predict(stack([world.net.smallest(), world.net.largest()]))
    counts, _ = np.histogram(cost, np.linspace(low, high, 5))
    assert (counts > 0.02 * len(rows)).all()


def test_chosen_subnets_are_new_and_spread_over_the_cost(world, designed) -> None:
    _, known, chosen = designed
    assert len(set(chosen)) == 24
    assert not {row.tobytes() for row in stack(chosen)} & {row.tobytes() for row in known}
    offered = pool(world.net.space, np.random.default_rng(0))
    limits = np.quantile(world.cost.predict(offered), np.linspace(0, 1, BANDS + 1))
    counts, _ = np.histogram(world.cost.predict(stack(chosen)), limits)
    assert (counts >= 2).all()


def test_chosen_subnets_tell_more_than_random_ones(world, designed) -> None:
    found, known, chosen = designed
    ours = information(world.net.space, found, np.concatenate([known, stack(chosen)]))
    for seed in range(5):
        drawn = stack(sample_distinct(world.net.space, 24, np.random.default_rng(seed)))
        assert ours > information(world.net.space, found, np.concatenate([known, drawn]))


def test_a_small_space_gives_all_it_has(world) -> None:
    cost = Metric("macs", "M", SPACE, tuple(Term((v.name,), np.arange(1.0, 1 + len(v.choices))) for v in SPACE))
    found = groups(SPACE, {v.name: np.zeros(len(v.choices)) for v in SPACE}, cost)
    known = stack(all_subnets()[:1])
    assert set(d_optimal(SPACE, found, cost, known, 999, np.random.default_rng(0))) == set(all_subnets()) - set(
        all_subnets()[:1]
    )
    assert d_optimal(SPACE, found, cost, known, 0, np.random.default_rng(0)) == []
