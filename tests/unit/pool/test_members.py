"""The members of a pool, against all pools there are."""

from itertools import combinations

import numpy as np
import pytest

from autotailor.pool.members import SLOWDOWNS, choose_members
from autotailor.serving import PoolError


def loss(latency: np.ndarray, accuracy: np.ndarray, rows: tuple[int, ...], slowdown: float) -> float:
    """Expected loss of a pool, slowdown by slowdown."""
    lost = []
    for x in np.linspace(1, slowdown, SLOWDOWNS):
        fits = [i for i in range(len(latency)) if latency[i] <= latency[-1] / x * (1 + 1e-12)] or [0]
        lost.append(accuracy[max(fits)] - accuracy[max(row for row in rows if row <= max(fits))])
    return float(np.mean(lost))


@pytest.mark.parametrize("seed", range(12))
def test_no_other_pool_with_both_ends_loses_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    latency, accuracy = np.cumsum(rng.uniform(0.05, 1, n)), np.cumsum(rng.exponential(1, n))
    count, slowdown = int(rng.integers(1, 5)), float(rng.uniform(1, 6))
    chosen = choose_members(latency, accuracy, count, slowdown)
    pools = [(0, *more) for k in range(min(count, n)) for more in combinations(range(1, n), k)]
    pools = [pool for pool in pools if pool[-1] == n - 1 or count == 1]
    assert (chosen.rows[0], chosen.rows[-1]) == (0, n - 1 if count > 1 else 0)
    assert len(chosen.rows) <= count
    assert chosen.loss == pytest.approx(min(loss(latency, accuracy, pool, slowdown) for pool in pools), abs=1e-9)
    assert chosen.loss == pytest.approx(loss(latency, accuracy, tuple(chosen.rows), slowdown), abs=1e-9)


def test_a_pool_as_large_as_the_front_loses_nothing() -> None:
    latency, accuracy = np.linspace(1, 3, 9), np.sqrt(np.linspace(1, 3, 9))
    assert choose_members(latency, accuracy, 9).loss == pytest.approx(0, abs=1e-12)
    assert choose_members(latency, accuracy, 3).loss > 1e-3


def test_the_largest_runs_where_nothing_slows_the_device_down() -> None:
    dense = np.linspace(1, 8, 200)  # of whose last row only the slowdown of exactly 1 asks
    for count in (2, 4, 16):
        assert choose_members(dense, dense, count).rows[-1] == 199


@pytest.mark.parametrize(
    ("latency", "accuracy", "count", "slowdown"),
    [([2.0, 1.0], [1.0, 2.0], 2, 4.0), ([1.0, 2.0], [2.0, 2.0], 2, 4.0), ([], [], 2, 4.0), ([1.0], [1.0], 0, 4.0)],
    ids=["latency falls", "accuracy stays", "empty", "no member"],
)
def test_what_is_no_front_is_refused(latency: list, accuracy: list, count: int, slowdown: float) -> None:
    with pytest.raises(PoolError, match=r"front|members"):
        choose_members(latency, accuracy, count, slowdown)
