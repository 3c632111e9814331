"""The choice among members, against a loop over all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotailor.runtime import Entry, Monitor, Policy, PoolError, Table, bounds_ms, decide, scores

SMALL, MIDDLE, LARGE = (
    Entry("small", 80.0, (0.5, 0.4, 0.1), energy_mj=1.0),
    Entry("middle", 90.0, (1.5, 0.4, 0.1), energy_mj=3.0),
    Entry("large", 95.0, (3.0, 0.8, 0.2), energy_mj=9.0),
)
TABLE = Table.of([SMALL, MIDDLE, LARGE])
ROWS = {entry.subnet: row for row, entry in enumerate(TABLE.entries)}


def slowed(slowdown: float, waiting: float = 0.0, inferences: int = 40) -> Monitor:
    monitor = Monitor()
    for _ in range(inferences):
        cpu = MIDDLE.latency_ms * slowdown
        monitor = monitor.observed(np.array(MIDDLE.split_ms), cpu * (1 + waiting), cpu)
    return monitor


def chosen(policy: Policy, active: str, monitor: Monitor | None = None, **state: float) -> tuple[str, str]:
    decision = decide(TABLE, monitor or Monitor(), policy, ROWS[active], **state)
    return TABLE.entries[decision.row].subnet, decision.event


@pytest.mark.parametrize(("seed", "members"), [*((seed, 40) for seed in range(20)), (20, 100_000)])
def test_the_choice_equals_a_loop_over_all_members(seed: int, members: int) -> None:
    """Four constraints, with the margin five: deadline, rate, quota, dwell."""
    rng = np.random.default_rng(seed)
    splits = rng.uniform(0, 2, (members, 3)).tolist()
    table = Table.of(
        [Entry(f"s{i}", float(rng.integers(50, 90)), tuple(split), rng.uniform(1, 5)) for i, split in enumerate(splits)]
    )
    monitor = Monitor()
    for _ in range(25):
        split = table.split_ms[rng.integers(len(table))]
        cpu = float(split @ [1.2, 1.9, 1.0]) * rng.uniform(0.9, 1.3)
        monitor = monitor.observed(split, cpu * rng.uniform(1, 1.4), cpu)
    policy = Policy(
        deadline_ms=float(rng.uniform(0.5, 8)),
        rate=float(rng.choice([0, 150, 400])),
        quota=float(rng.choice([math.inf, 0.4])),
        margin=float(rng.choice([0, 0.2])),
    )
    active, since, battery = int(rng.integers(len(table))), float(rng.choice([0.1, 9])), rng.choice([None, 0.3])
    rank = scores(table, battery)
    cpu, bound = monitor.load.cpu_ms(table.split_ms), bounds_ms(table, monitor, policy)

    def fits(row: int, margin: float = 0.0) -> bool:
        more = 1 + margin
        return bool(
            bound[row] * more <= policy.deadline_ms
            and policy.rate * bound[row] * more / 1000 <= 1
            and policy.rate * cpu[row] * more / 1000 <= policy.quota
        )

    if fits(active):
        better = [r for r in range(len(table)) if fits(r, policy.margin) and rank[r] > rank[active]]
        better = better if since >= policy.dwell_s else []
        expected = (max(better, key=lambda r: (rank[r], -r)), "up") if better else (active, "stay")
    else:
        able = [r for r in range(len(table)) if fits(r)]
        expected = (max(able, key=lambda r: (rank[r], -r)), "down") if able else (table.fastest, "nothing fits")
    decision = decide(table, monitor, policy, active, since, battery)
    assert (decision.row, decision.event) == expected
    assert decision.latency_ms == pytest.approx(bound[decision.row])


def test_it_goes_down_at_once_and_up_after_the_dwell() -> None:
    policy = Policy(deadline_ms=4.5, dwell_s=2.0)
    assert chosen(policy, "large", slowed(2.0), since_switch_s=0.0) == ("middle", "down")
    assert chosen(policy, "middle", since_switch_s=1.9) == ("middle", "stay")
    assert chosen(policy, "middle", since_switch_s=2.0) == ("large", "up")


def test_it_goes_up_with_a_margin_only() -> None:
    assert chosen(Policy(deadline_ms=4.3, margin=0.1), "middle") == ("middle", "stay")
    assert chosen(Policy(deadline_ms=4.3, margin=0.1), "large") == ("large", "stay")
    assert chosen(Policy(deadline_ms=4.5, margin=0.1), "middle") == ("large", "up")


def test_where_nothing_fits_the_fastest_runs_and_the_decision_says_so() -> None:
    assert chosen(Policy(deadline_ms=0.5), "large") == ("small", "nothing fits")
    assert chosen(Policy(deadline_ms=0.5), "small") == ("small", "nothing fits")


def test_under_a_quota_rate_times_cpu_time_decides() -> None:
    policy = Policy(deadline_ms=100.0, rate=100.0, quota=0.25)
    assert chosen(policy, "large") == ("middle", "down")
    assert chosen(Policy(deadline_ms=100.0, rate=100.0), "large") == ("large", "stay")
    assert chosen(Policy(deadline_ms=100.0, rate=300.0), "large") == ("middle", "down")


def test_waiting_counts_against_the_deadline_and_not_against_the_quota() -> None:
    waiting = slowed(1.0, waiting=1.0)
    assert chosen(Policy(deadline_ms=5.5), "large", waiting) == ("middle", "down")
    assert chosen(Policy(deadline_ms=100.0, rate=100.0, quota=0.45), "large", waiting) == ("large", "stay")


def test_an_empty_battery_prefers_energy_and_a_full_one_accuracy() -> None:
    policy = Policy(deadline_ms=100.0)
    assert chosen(policy, "small", battery=1.0) == ("large", "up")
    assert chosen(policy, "large", battery=0.0) == ("small", "up")
    assert chosen(policy, "small", battery=0.5) == ("middle", "up")


def test_a_battery_needs_the_energy_of_each_member() -> None:
    table = Table.of([Entry("a", 1.0, (1.0, 0.0, 0.0))])
    with pytest.raises(PoolError, match="energy of a member is unknown"):
        scores(table, 0.5)
    with pytest.raises(PoolError, match=r"level is 1\.5"):
        scores(TABLE, 1.5)


@pytest.mark.parametrize(
    ("name", "value"), [("deadline_ms", 0.0), ("quantile", 1.0), ("rate", -1.0), ("quota", 0.0), ("margin", -0.1)]
)
def test_a_policy_that_nothing_can_meet_is_refused(name: str, value: float) -> None:
    with pytest.raises(PoolError, match=f"policy: {name}"):
        Policy(**{"deadline_ms": 1.0, name: value})
