"""Waiting, against a simulated scheduler and against windows that are summed one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import poisson

from autotailor.serving.replay import Quota, Replay
from replays import member_of

MOST = PLACES = 48
SLICE_MS, CALM, LEAST_BEFORE = 3.0, 3.0, 8
DEAF_MS = 1000.0
"""Cost of a step after which the monitor learns nothing for two minutes: it only remembers."""


class Seen:
    """Inferences without slowdown, so that what exceeds the CPU time is waiting."""

    def __init__(self, *lengths: float, is_deaf: bool = False, threads: int = 1) -> None:
        self.lengths, self.now, self.quota = list(lengths), 0.0, Quota()
        members = [member_of(70.0, (length, 0.0, 0.0)) for length in lengths]
        self.replay = Replay(members, threads, DEAF_MS if is_deaf else 0.0)

    def ran(self, cpu_ms: float, waits: list[float]) -> Seen:
        for wait in waits:
            self.replay.ran(self.lengths.index(cpu_ms), cpu_ms + wait, cpu_ms)
        return self

    def limit(self, cores: float, period_ms: float = 100.0) -> Seen:
        """The machine says another quota, at which the chooser looks."""
        self.now += 1.0
        self.replay.at(self.now, Quota(cores, period_ms))
        self.replay.set()
        return self

    def waits_ms(self, cpu_ms: float, q: float) -> float:
        return float(self.replay.bounds_ms(q)[self.lengths.index(cpu_ms)]) - cpu_ms

    @property
    def share(self) -> float:
        """Waiting as a share of CPU time, over all that is remembered."""
        return float(self.replay.status()["load"]["waiting"])


def scheduled(cpu_ms: float, pause_ms: float, count: int = MOST) -> list[float]:
    """Waiting of inferences, one behind the other, of a thread that pauses after each slice of CPU time."""
    ends = np.cumsum(np.full(count, cpu_ms)) + 0.37
    stops = np.floor(ends / SLICE_MS)
    return [float(pause_ms * stopped) for stopped in np.diff(np.concatenate(([0.0], stops)))]


def throttled(cpu_ms: float, quota: float, count: int, period_ms: float = 20.0) -> list[float]:
    """Waiting of inferences without a pause, of a thread that may run for a share of each period of a quota."""
    ends = np.cumsum(np.full(count, cpu_ms)) + 0.37
    stops = np.floor(ends / (quota * period_ms))
    return [float((1 - quota) * period_ms * each) for each in np.diff(np.concatenate(([0.0], stops)))]


def test_windows_are_those_that_a_loop_sums_up() -> None:
    rng = np.random.default_rng(0)
    cpus = [float(rng.uniform(0.2, 8)) for _ in range(MOST)]
    waited = [float(rng.choice([0.0, 5.0, 11.0])) for _ in range(MOST)]
    whole = sum(cpus)
    lengths = (0.3, 2.0, 9.0, 1.3 * whole, 8 * whole)
    seen = Seen(*cpus, *(length * factor for length in lengths for factor in (0.66, 1.0, 1.5)), is_deaf=True)
    stops, at = [], 0.0
    for cpu, wait in zip(cpus, waited, strict=True):
        seen.ran(cpu, [wait])
        count = max(1, round(cpu / SLICE_MS)) if wait else 0
        stops += [(at + cpu * (number + 1) / count, wait / count) for number in range(count)]
        at += cpu
    ring = [(place + turn * whole, wait) for turn in range(11) for place, wait in stops]
    for length in lengths:
        sums = []
        for place in range(PLACES):
            start = (place + 0.5) / PLACES * whole
            sums.append(sum(wait for at, wait in ring if start < at <= start + length))
        for q in (0.5, 0.9, 0.99):
            expected = sorted(sums)[math.ceil(q * PLACES) - 1]
            low, high = (seen.waits_ms(length * factor, q) for factor in (0.66, 1.5))
            assert low - 1e-6 <= expected <= high + 1e-6
    assert seen.waits_ms(8 * whole, 0.9) == pytest.approx(8 * sum(waited))


def test_what_a_small_network_saw_says_how_long_a_large_one_waits_and_the_other_way_round() -> None:
    small = Seen(0.8, 12.0).ran(0.8, scheduled(0.8, 9.0))
    assert small.waits_ms(0.8, 0.5) == 0.0  # most are not interrupted
    assert small.waits_ms(12.0, 0.5) == pytest.approx(4 * 9.0, rel=0.3)  # a large one is, after each of its slices
    large = Seen(0.3, 12.0).ran(12.0, scheduled(12.0, 9.0))
    assert large.waits_ms(0.3, 0.5) == 0.0
    assert large.waits_ms(12.0, 0.5) == pytest.approx(36.0, rel=0.1)


def test_a_network_that_is_longer_than_all_that_is_remembered_waits_in_proportion() -> None:
    assert Seen(1.0, 400.0).ran(1.0, [2.0] * 4).waits_ms(400.0, 0.5) == pytest.approx(800.0, rel=0.05)


def test_small_differences_between_both_clocks_are_no_waiting() -> None:
    seen = Seen(1.0, 5.0).ran(1.0, [0.04, -0.1, 0.0])
    assert seen.share == 0.0
    assert [seen.waits_ms(length, 0.99) for length in seen.lengths] == [0.0, 0.0]


def test_only_the_last_inferences_are_remembered() -> None:
    seen = Seen(1.0, is_deaf=True).ran(1.0, [5.0] * 3 + [0.0] * (MOST - 1))
    assert seen.share == pytest.approx(5.0 / MOST)
    assert seen.ran(1.0, [0.0]).share == 0.0


def likelihood(count: int, cpu_ms: float, rate: float) -> float:
    """Logarithm of a Poisson process's probability of so many interruptions, with scipy's words."""
    return float(poisson.logpmf(count, rate * cpu_ms)) if rate else float(np.log(count == 0))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_forgotten_is_what_two_rates_explain_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    change = int(rng.integers(4, MOST - 4))
    cpus = [float(rng.uniform(0.5, 8)) for _ in range(MOST)]
    waited = [5.0 if rng.random() < (0.5 if number < change else 0.05) else 0.0 for number in range(MOST)]
    seen = Seen(*cpus, is_deaf=True)
    for number, (cpu, wait) in enumerate(zip(cpus, waited, strict=True)):
        if number == MOST - 1:
            seen.replay.at(1000.0)  # the monitor may learn again, and looks for changes
        seen.ran(cpu, [wait])
    counts = [max(1, round(cpu / SLICE_MS)) if wait else 0 for cpu, wait in zip(cpus, waited, strict=True)]
    best, first = CALM, 0
    for place in range(2, MOST - 1):
        n, before = sum(counts[:place]), sum(cpus[:place])
        m, behind = sum(counts[place:]), sum(cpus[place:])
        apart = likelihood(n, before, n / before) + likelihood(m, behind, m / behind)
        rate = (n + m) / (before + behind)
        gain = apart - likelihood(n, before, rate) - likelihood(m, behind, rate)
        if m / behind < n / before and gain > best:
            best, first = gain, place
    assert seen.share == pytest.approx(sum(waited[first:]) / sum(cpus[first:]))


def test_a_load_that_has_ended_is_forgotten_and_one_that_begins_forgets_nothing() -> None:
    waits = scheduled(2.0, 9.0, 30)
    ended = Seen(2.0, 6.0).ran(2.0, waits)
    assert ended.share == pytest.approx(sum(waits) / 60.0)
    assert ended.waits_ms(6.0, 0.9) > 0.0
    assert ended.ran(2.0, [0.0] * 18).share == 0.0
    begun = Seen(2.0).ran(2.0, [0.0] * 30 + waits[:18])
    assert begun.share == pytest.approx(sum(waits[:18]) / 96.0)


@pytest.mark.parametrize(("before", "after"), [(0.85, 0.5), (0.5, 0.3), (0.3, 0.6), (0.6, 0.9)])
def test_another_quota_is_followed_at_the_second_long_inference(before: float, after: float) -> None:
    waits, (first, second) = throttled(40.0, before, 30), throttled(40.0, after, 2)
    seen = Seen(1.0, 40.0).ran(40.0, waits)
    assert seen.ran(40.0, [first]).share == pytest.approx((sum(waits) + first) / 1240.0)  # alone, it may be an accident
    seen.ran(1.0, [0.0])  # the smallest member, while another one is prepared
    assert seen.ran(40.0, [second]).share == pytest.approx((first + second) / 81.0)
    assert seen.waits_ms(40.0, 0.5) == pytest.approx(40.0 * (1 - after) / after, abs=(1 - after) * 20)


@pytest.mark.parametrize(
    ("cpu", "waits", "kept"),
    [(40.0, [10.0] * 30 + [30.0, 10.0, 30.0, 10.0], 34), (40.0, [10.0] * 30 + [30.0, 30.0], 2),
     (2.0, [3.0] * 30 + [9.0, 9.0], 32), (40.0, [10.0] * (LEAST_BEFORE - 1) + [30.0, 30.0], LEAST_BEFORE + 1),
     (40.0, [0.0] * 30 + [30.0, 30.0], 32)],
    ids=["two in a row", "a step", "long ones", "something before", "no calm before"],
)  # fmt: skip
def test_a_step_needs_long_inferences_two_of_them_and_something_before(
    cpu: float, waits: list[float], kept: int
) -> None:
    assert Seen(cpu).ran(cpu, waits).share == pytest.approx(sum(waits[-kept:]) / (kept * cpu))


def test_a_load_that_stays_is_seldom_taken_for_a_step() -> None:
    rng, seen, kept, forgotten, count = np.random.default_rng(0), Seen(24.0), [], 0, 1500
    for _ in range(count):
        wait = float(rng.gamma(6.0, 0.5, round(24.0 / SLICE_MS)).sum())
        seen.ran(24.0, [wait])
        kept = [*kept[1 - MOST :], wait]
        if seen.share != pytest.approx(sum(kept) / (24.0 * len(kept))):
            forgotten, kept = forgotten + 1, kept[-2:]
            assert seen.share == pytest.approx(sum(kept) / 48.0)
    assert forgotten / count < 1 / (LEAST_BEFORE + 1) ** 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("period", [20.0, 100.0])
@pytest.mark.parametrize(("before", "after"), [(0.85, 0.5), (0.5, 0.3), (0.3, 0.8)])
def test_what_waited_under_a_quota_waits_otherwise_under_another(
    before: float, after: float, period: float, threads: int
) -> None:
    seen = Seen(0.3, 5.0, 40.0, 90.0, threads=threads).limit(threads * before, period)
    seen.ran(40.0, throttled(40.0, before, 30, period)).limit(threads * after, period)
    for cpu in seen.lengths:
        shorter, longer = (np.array(throttled(factor * cpu, after, 4000, period)) for factor in (0.7, 1.5))
        for q in (0.5, 0.9):
            least, most = np.quantile(shorter, q - 0.05), np.quantile(longer, min(1.0, q + 0.05))
            assert least - 1e-6 <= seen.waits_ms(cpu, q) <= most + 1e-6
    assert seen.share == pytest.approx(1 / after - 1)


def test_what_no_quota_forced_is_not_changed_by_one() -> None:
    pausing = Seen(40.0).limit(0.5).ran(40.0, [1.0, 0.0, 5.0])
    assert pausing.share == pausing.limit(0.3).share == pytest.approx(5.0 / 120.0)
    short = Seen(4.0).limit(0.5).ran(4.0, throttled(4.0, 0.5, 30))
    before = short.share
    assert short.limit(0.3).share == before > 0.5
    busy = Seen(40.0).ran(40.0, throttled(40.0, 0.5, 30))
    before = busy.share
    assert busy.limit(0.5).share == before > 0.5  # whatever waited, it was no quota
    assert busy.limit(1.0).share == 0.0
