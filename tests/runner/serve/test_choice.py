"""The choice: what it was when there were two engines, what a loop over all members finds, and its rules one by one."""

import csv
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotailor.serving import PoolError
from autotailor.serving.replay import Quota, Replay
from replays import member_of, ran_often

RECORDED = Path(__file__).with_name("decisions.csv")
"""What a former engine in Python chose on the loads of ``replayed``; the one in C++ chose the same."""
SEEDS, TURNS = 24, 70


def replayed(seed: int, make: Callable[..., Any]) -> Iterator[tuple[int, str, float, int]]:
    """Choices on a random table under a random load, with settings and a quota that change: member, event, bound, best.

    Args:
        seed: of the table and the load.
        make: makes the replay, from the members and the cost of a step.
    """
    rng, longer = np.random.default_rng(seed), 12 if seed % 3 == 2 else 1  # long inferences wait under a quota
    members = [
        member_of(float(rng.integers(50, 90)), tuple(longer * rng.uniform(0, 2, 3)), energy_mj=float(rng.uniform(1, 5)))
        for _ in range(int(rng.choice([1, 2, 16, 200])))
    ]
    members.sort(key=lambda member: member.latency_ms)  # as in a pool
    replay = make(members, step_ms=float(rng.choice([0.0, 5.0])))
    wave, step, cores = rng.uniform(0, 0.6), int(rng.integers(10, 60)), 9.0
    target, seconds = 0, 0.0
    for turn in range(TURNS):
        if turn % 9 == 0:
            seconds += 2.0
            if seed % 3 == 2:
                cores = float(rng.choice([0.25, 0.6, 0.83, 9.0]))
            replay.at(seconds, Quota(cores, 20.0))
            replay.set(
                deadline_ms=longer * float(rng.uniform(1, 15)),
                quantile=float(rng.choice([0.5, 0.9, 0.95, 0.99])),
                rate=float(rng.choice([0, 0, 100, 400])) / longer,
                margin=float(rng.choice([0, 0.1, 0.3])),
                dwell_s=float(rng.choice([0, 0.5])),
                horizon=int(rng.integers(1, 4)),
                battery=None if rng.random() < 0.6 else float(rng.uniform()),
            )
        seconds += float(rng.choice([0.02, 0.4]))
        replay.at(seconds, Quota(cores, 20.0))
        choice = replay.choose(target)
        loaded = sorted(rng.choice(len(members), min(3, len(members)), replace=False).tolist())
        yield choice.member, choice.event, choice.latency_ms, replay.best_of(loaded)
        target = choice.member if rng.random() < 0.8 else int(rng.integers(len(members)))
        split = np.array(members[target].split_ms)
        load = [1.2 + wave * math.sin(turn / 3), 1.9, 1.0] if turn < step else [2.6, 3.4, 1.5]
        cpu = float(split @ load) * rng.uniform(0.95, 1.1)
        wall = cpu * rng.uniform(1, 1.3)
        if seed % 2:  # interruptions that become rarer
            wall = cpu + (rng.uniform(2, 9) if rng.random() < (0.6 if turn < step else 0.05) else 0.0)
        replay.ran(target, wall, cpu)


def test_decisions_are_those_that_both_engines_made() -> None:
    with RECORDED.open(encoding="utf-8", newline="") as stream:
        expected = [(int(a), b, float(c), int(d)) for a, b, c, d in csv.reader(stream)]
    found = [row for seed in range(SEEDS) for row in replayed(seed, Replay)]
    assert [(member, event, best) for member, event, _, best in found] == [(a, b, d) for a, b, _, d in expected]
    np.testing.assert_allclose([row[2] for row in found], [row[2] for row in expected], rtol=1e-7)
    assert {event for _, event, *_ in found} == {"up", "down", "stay", "nothing fits"}


SMALL, MIDDLE, LARGE = range(3)
MEMBERS = [member_of(60.0 + 10 * i, (ms, 0.0, 0.0), energy_mj=ms) for i, ms in enumerate((1.0, 2.0, 4.0))]


def chosen(target: int, slowdown: float = 1.0, waiting: float = 0.0, **settings: float) -> tuple[int, str]:
    """What is to run where ``target`` runs, under a load that the middle member has seen."""
    replay = Replay(MEMBERS, **{"dwell_s": 0.0, **settings})
    if slowdown != 1.0 or waiting:
        ran_often(replay, MEMBERS[MIDDLE], MIDDLE, 10, slowdown, waiting * slowdown * MEMBERS[MIDDLE].latency_ms)
    found = replay.choose(target)
    return found.member, found.event


@pytest.mark.parametrize(("seed", "count"), [*((seed, 40) for seed in range(20)), (20, 100_000)])
def test_the_choice_equals_a_loop_over_all_members(seed: int, count: int) -> None:
    """Four constraints, with the margin five: deadline, rate, quota, dwell."""
    rng = np.random.default_rng(seed)
    splits = rng.uniform(0, 2, (count, 3))
    accuracy, energy = rng.integers(50, 90, count).astype(float), rng.uniform(1, 5, count)
    members = [member_of(*each) for each in zip(accuracy.tolist(), splits.tolist(), energy.tolist(), strict=True)]
    rate, quota, margin = rng.choice([0, 150, 400]), rng.choice([math.inf, 0.4]), float(rng.choice([0, 0.2]))
    deadline, target, dwell = float(rng.uniform(0.5, 8)), int(rng.integers(count)), float(rng.choice([0, 9]))
    battery = None if rng.random() < 0.5 else 0.3
    quota_or_none = None if math.isinf(quota) else float(quota)
    settings = {"rate": float(rate), "quota": quota_or_none, "margin": margin, "dwell_s": dwell, "battery": battery}
    replay = Replay(members, deadline_ms=deadline, **settings)
    for _ in range(25):
        number = int(rng.integers(count))
        cpu = float(splits[number] @ [1.2, 1.9, 1.0]) * rng.uniform(0.9, 1.3)
        replay.ran(number, cpu * rng.uniform(1, 1.4), cpu)
    was_switched = replay.choose(target).member != target
    replay.at(1.0)
    load, bound = replay.status()["load"], replay.bounds_ms(0.95)
    cpu_ms = splits @ [load[f"slowdown_{name}"] for name in ("compute", "memory", "fixed")]
    scaled = [(values - values.min()) / (np.ptp(values) or 1.0) for values in (accuracy, energy)]
    rank = accuracy if battery is None else battery * scaled[0] - (1 - battery) * scaled[1]

    def fits(more: float = 1.0) -> np.ndarray:
        in_time = (bound * more <= deadline) & (rate * bound * more / 1000 <= 1)
        return in_time & (rate * cpu_ms * more / 1000 <= quota)

    order = np.lexsort((splits.sum(axis=1), -accuracy))  # of equal ones the most accurate, then the fastest

    def best(able: np.ndarray) -> int:
        return int(max((number for number in order if able[number]), key=lambda number: rank[number]))

    able, better = fits(), fits(1 + margin) & (rank > rank[target])
    expected = (target, "stay")
    if not able[target]:
        expected = (best(able), "down") if able.any() else (int(splits.sum(axis=1).argmin()), "nothing fits")
    elif better.any() and not (was_switched and dwell):
        expected = (best(better), "up")
    found = replay.choose(target)
    assert (found.member, found.event) == expected
    assert found.latency_ms == pytest.approx(bound[found.member])


def test_it_goes_down_at_once_and_up_after_the_dwell() -> None:
    replay = Replay(MEMBERS, deadline_ms=4.5, dwell_s=2.0)
    ran_often(replay, MEMBERS[LARGE], LARGE, 2, 2.0)
    assert replay.choose(LARGE).event == "down"
    ran_often(replay, MEMBERS[MIDDLE], MIDDLE, 30, 1.0)
    for seconds, member in ((1.9, MIDDLE), (2.0, LARGE)):
        replay.at(seconds)
        assert replay.choose(MIDDLE).member == member


def test_it_goes_up_with_a_margin_only() -> None:
    assert chosen(MIDDLE, deadline_ms=4.3, margin=0.1) == (MIDDLE, "stay")
    assert chosen(LARGE, deadline_ms=4.3, margin=0.1) == (LARGE, "stay")
    assert chosen(MIDDLE, deadline_ms=4.5, margin=0.1) == (LARGE, "up")


def test_where_nothing_fits_the_fastest_runs_and_the_decision_says_so() -> None:
    assert chosen(LARGE, deadline_ms=0.5) == chosen(SMALL, deadline_ms=0.5) == (SMALL, "nothing fits")


def test_under_a_quota_rate_times_cpu_time_decides() -> None:
    assert chosen(LARGE, deadline_ms=100.0, rate=100.0, quota=0.25) == (MIDDLE, "down")
    assert chosen(LARGE, deadline_ms=100.0, rate=100.0) == (LARGE, "stay")
    assert chosen(LARGE, deadline_ms=100.0, rate=300.0) == (MIDDLE, "down")


def test_waiting_counts_against_the_deadline_and_not_against_the_quota() -> None:
    assert chosen(LARGE, waiting=1.0, deadline_ms=5.5) == (MIDDLE, "down")
    assert chosen(LARGE, waiting=1.0, deadline_ms=100.0, rate=100.0, quota=0.45) == (LARGE, "stay")


def test_an_empty_battery_prefers_energy_and_a_full_one_accuracy() -> None:
    assert chosen(SMALL, deadline_ms=100.0, battery=1.0) == (LARGE, "up")
    assert chosen(LARGE, deadline_ms=100.0, battery=0.0) == (SMALL, "up")
    assert chosen(SMALL, deadline_ms=100.0, battery=0.5) == (MIDDLE, "up")


@pytest.mark.parametrize(
    ("settings", "member"),
    [({}, LARGE), ({"rate": 200.0}, LARGE), ({"rate": 300.0}, SMALL), ({"rate": 200.0, "quota": 0.7}, SMALL),
     ({"battery": 1.0}, LARGE), ({"battery": 0.0}, SMALL)],
    ids=["deadline", "a rate that fits", "rate", "quota", "full battery", "empty battery"],
)  # fmt: skip
def test_what_runs_until_a_member_is_prepared_fits_in_the_same_ways(settings: dict[str, float], member: int) -> None:
    replay = Replay(MEMBERS, deadline_ms=7.0, **settings)
    replay.choose(SMALL)
    assert replay.best_of([SMALL, LARGE]) == member


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"deadline_ms": 0.0}, "deadline_ms is 0"), ({"quantile": 1.0}, "quantile is 1"), ({"rate": -1.0}, "rate is -1"),
     ({"quota": 0.0}, "quota is 0"), ({"margin": -0.1}, r"margin is -0\.1"), ({"dwell_s": -1.0}, "dwell_s is -1"),
     ({"horizon": 0}, "horizon: expected"), ({"battery": 1.5}, "the level is no share"), ({"colour": 1}, "no setting")],
)  # fmt: skip
def test_a_policy_that_nothing_can_meet_is_refused_and_changes_nothing(
    settings: dict[str, float], message: str
) -> None:
    replay = Replay(MEMBERS)
    before = replay.status()["settings"]
    with pytest.raises(PoolError, match=message):
        replay.set(**{"rate": 5.0, **settings})
    assert replay.status()["settings"] == before


def test_a_battery_needs_the_energy_of_each_member() -> None:
    with pytest.raises(PoolError, match="energy of a member is unknown"):
        Replay([member_of(70.0, (1.0, 0.0, 0.0))], battery=0.5)
