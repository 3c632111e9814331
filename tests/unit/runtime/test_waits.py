"""Waiting, against a simulated scheduler and against windows that are summed one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import poisson

from autotailor.runtime.waits import CALM, LEAST_BEFORE, MOST, PLACES, SLICE_MS, Quota, Waits


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


def seen(cpu_ms: float, waits: list[float]) -> Waits:
    found = Waits()
    for wait in waits:
        found = found.observed(cpu_ms + wait, cpu_ms)
    return found


def test_windows_are_those_that_a_loop_sums_up() -> None:
    rng = np.random.default_rng(0)
    waits = Waits()
    for _ in range(MOST):
        cpu = float(rng.uniform(0.2, 8))
        waits = waits.observed(cpu + float(rng.choice([0.0, 5.0, 11.0])), cpu)
    whole = sum(waits.cpu_ms)
    stops, at = [], 0.0
    for cpu, wait in zip(waits.cpu_ms, waits.waited_ms, strict=True):
        count = max(1, round(cpu / SLICE_MS)) if wait else 0
        stops += [(at + cpu * (number + 1) / count, wait / count) for number in range(count)]
        at += cpu
    ring = [(place + turn * whole, wait) for turn in range(11) for place, wait in stops]
    for length in (0.3, 2.0, 9.0, 1.3 * whole, 8 * whole):
        sums = []
        for place in range(PLACES):
            start = (place + 0.5) / PLACES * whole
            sums.append(sum(wait for at, wait in ring if start < at <= start + length))
        for q in (0.5, 0.9, 0.99):
            expected = sorted(sums)[math.ceil(q * PLACES) - 1]
            low, high = (waits.quantile_ms(np.array([length * factor]), q)[0] for factor in (0.66, 1.5))
            assert low - 1e-9 <= expected <= high + 1e-9
            if math.isclose(length, 8 * whole):
                assert waits.quantile_ms(np.array([length]), q)[0] == pytest.approx(expected)


def test_what_a_small_network_saw_says_how_long_a_large_one_waits() -> None:
    small = seen(0.8, scheduled(0.8, 9.0))
    assert small.quantile_ms(np.array([0.8]), 0.5)[0] == 0.0  # most are not interrupted
    found = small.quantile_ms(np.array([12.0]), 0.5)[0]
    assert found == pytest.approx(4 * 9.0, rel=0.3)  # a large one is, after each of its slices


def test_what_a_large_network_saw_says_how_seldom_a_small_one_waits() -> None:
    large = seen(12.0, scheduled(12.0, 9.0))
    assert large.quantile_ms(np.array([0.3]), 0.5)[0] == 0.0
    assert large.quantile_ms(np.array([12.0]), 0.5)[0] == pytest.approx(36.0, rel=0.1)


def test_a_network_that_is_longer_than_all_that_is_remembered_waits_in_proportion() -> None:
    waits = seen(1.0, [2.0] * 4)
    assert waits.quantile_ms(np.array([400.0]), 0.5)[0] == pytest.approx(800.0, rel=0.05)


def test_small_differences_between_both_clocks_are_no_waiting() -> None:
    waits = seen(1.0, [0.04, -0.1, 0.0])
    assert waits.waited_ms == (0.0, 0.0, 0.0)
    assert waits.share == 0.0
    assert waits.quantile_ms(np.array([1.0, 5.0]), 0.99).tolist() == [0.0, 0.0]


def test_only_the_last_inferences_are_remembered() -> None:
    waits = seen(1.0, [5.0] * 3 + [0.0] * MOST)
    assert len(waits.cpu_ms) == MOST
    assert waits.share == 0.0


def test_nothing_waits_before_the_first_inference() -> None:
    assert Waits().quantile_ms(np.array([1.0]), 0.95).tolist() == [0.0]
    assert Waits().share == 0.0


def likelihood(count: int, cpu_ms: float, rate: float) -> float:
    """Logarithm of a Poisson process's probability of so many interruptions, with scipy's words."""
    return float(poisson.logpmf(count, rate * cpu_ms)) if rate else float(np.log(count == 0))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_forgotten_is_what_two_rates_explain_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    waits, change = Waits(), int(rng.integers(4, MOST - 4))
    for number in range(MOST):
        cpu = float(rng.uniform(0.5, 8))
        wait = 5.0 if rng.random() < (0.5 if number < change else 0.05) else 0.0
        waits = waits.observed(cpu + wait, cpu)
    counts = [
        max(1, round(cpu / SLICE_MS)) if wait else 0 for cpu, wait in zip(waits.cpu_ms, waits.waited_ms, strict=True)
    ]
    best, first = CALM, 0
    for place in range(2, MOST - 1):
        n, before = sum(counts[:place]), sum(waits.cpu_ms[:place])
        m, behind = sum(counts[place:]), sum(waits.cpu_ms[place:])
        apart = likelihood(n, before, n / before) + likelihood(m, behind, m / behind)
        rate = (n + m) / (before + behind)
        gain = apart - likelihood(n, before, rate) - likelihood(m, behind, rate)
        if m / behind < n / before and gain > best:
            best, first = gain, place
    assert waits.since_change().cpu_ms == waits.cpu_ms[first:]


def test_a_load_that_has_ended_is_forgotten_and_one_that_begins_forgets_nothing() -> None:
    busy = seen(2.0, scheduled(2.0, 9.0, 30))
    assert busy.since_change() is busy
    ended = busy
    for _ in range(18):
        ended = ended.observed(2.0, 2.0)
    assert not any(ended.since_change().waited_ms)
    assert ended.quantile_ms(np.array([6.0]), 0.9)[0] > 0.0  # which would have kept a larger member away
    begun = seen(2.0, [0.0] * 30 + scheduled(2.0, 9.0, 18))
    assert begun.since_change() is begun
    calm = seen(2.0, [0.0] * 30)
    assert calm.since_change() is calm


def remembered(waits: Waits, cpu_ms: float, more: list[float]) -> Waits:
    """The waits after more inferences, each followed by a look for changes."""
    for wait in more:
        waits = waits.observed(cpu_ms + wait, cpu_ms).since_change()
    return waits


@pytest.mark.parametrize(("before", "after"), [(0.85, 0.5), (0.5, 0.3), (0.3, 0.6), (0.6, 0.9)])
def test_another_quota_is_followed_at_the_second_long_inference(before: float, after: float) -> None:
    waits = remembered(Waits(), 40.0, throttled(40.0, before, 30))
    assert len(waits.cpu_ms) == 30
    first, second = throttled(40.0, after, 2)
    waits = remembered(waits, 40.0, [first])
    assert len(waits.cpu_ms) == 31  # alone, it may be an accident
    waits = waits.observed(1.0, 1.0).since_change()  # the smallest member, while another one is prepared
    waits = remembered(waits, 40.0, [second])
    assert waits.cpu_ms == (40.0, 1.0, 40.0)
    share = (1 - after) / after
    assert waits.quantile_ms(np.array([40.0]), 0.5)[0] == pytest.approx(40.0 * share, abs=(1 - after) * 20)


def test_a_step_needs_long_inferences_two_of_them_and_something_before() -> None:
    busy = remembered(Waits(), 40.0, [10.0] * 30)
    assert len(remembered(busy, 40.0, [30.0, 10.0, 30.0, 10.0]).cpu_ms) == 34
    assert len(remembered(busy, 40.0, [30.0, 30.0]).cpu_ms) == 2
    short = remembered(Waits(), 2.0, [3.0] * 30)
    assert len(remembered(short, 2.0, [9.0, 9.0]).cpu_ms) == 32
    few = remembered(Waits(), 40.0, [10.0] * (LEAST_BEFORE - 1))
    assert len(remembered(few, 40.0, [30.0, 30.0]).cpu_ms) == LEAST_BEFORE + 1
    calm = remembered(Waits(), 40.0, [0.0] * 30)
    assert len(remembered(calm, 40.0, [30.0, 30.0]).cpu_ms) == 32  # which is worth remembering while a burst lasts


def test_a_load_that_stays_is_seldom_taken_for_a_step() -> None:
    rng = np.random.default_rng(0)
    waits, forgotten, count = Waits(), 0, 1500
    for _ in range(count):
        turns = round(24.0 / SLICE_MS)
        before = len(waits.cpu_ms)
        waits = remembered(waits, 24.0, [float(rng.gamma(6.0, 0.5, turns).sum())])
        forgotten += len(waits.cpu_ms) < before
    assert forgotten / count < 1 / (LEAST_BEFORE + 1) ** 2


@pytest.mark.parametrize("period", [20.0, 100.0])
@pytest.mark.parametrize(("before", "after"), [(0.85, 0.5), (0.5, 0.3), (0.3, 0.8)])
def test_what_waited_under_a_quota_waits_otherwise_under_another(before: float, after: float, period: float) -> None:
    waits = seen(40.0, throttled(40.0, before, 30, period))
    found = waits.under_quota(Quota(before, period), Quota(after, period))
    for cpu in (0.3, 5.0, 40.0, 90.0):
        shorter, longer = (np.array(throttled(factor * cpu, after, 4000, period)) for factor in (0.7, 1.5))
        for q in (0.5, 0.9):
            least, most = np.quantile(shorter, q - 0.05), np.quantile(longer, min(1.0, q + 0.05))
            assert least - 1e-6 <= found.quantile_ms(np.array([cpu]), q)[0] <= most + 1e-6
    assert found.share == pytest.approx(1 / after - 1)


def test_what_no_quota_forced_is_not_changed_by_one() -> None:
    pausing = seen(40.0, [1.0, 0.0, 3.0])
    assert pausing.under_quota(Quota(0.5), Quota(0.3)) is pausing
    short = seen(4.0, throttled(4.0, 0.5, 30))
    assert short.under_quota(Quota(0.5), Quota(0.3)) is short
    busy = seen(40.0, throttled(40.0, 0.5, 30))
    assert busy.under_quota(Quota(), Quota(0.5)) is busy  # whatever waited, it was no quota
    assert not any(busy.under_quota(Quota(0.5), Quota()).waited_ms)
    assert not any(busy.under_quota(Quota(0.5), Quota(1.0)).waited_ms)


def test_threads_that_compute_together_share_a_quota() -> None:
    assert Quota(2.0, 50.0).of_each(4) == Quota(0.5, 50.0)
    assert Quota(0.5).forced == 1.0
    assert Quota().forced == Quota(1.5).forced == 0.0
