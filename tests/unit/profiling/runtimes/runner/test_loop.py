"""The loop of the Python runner: the order of programs, the runs of one visit, and what is said of many runs."""

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from autotailor.profiling.measuring.remaining import ANCHOR_SHARE
from autotailor.profiling.runtimes.runner import loop as runner_loop


@pytest.mark.parametrize(("seconds", "shares"), [(4.0, (0.07, 0.13)), (0.01, (0.8, 1.0))])
def test_the_anchor_has_its_share_of_a_pass(
    seconds: float, shares: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = {"anchor": 1.0} | {f"network {i}": seconds for i in range(16)}
    now, seen = 0.0, list[str]()
    monkeypatch.setattr(runner_loop, "time", SimpleNamespace(perf_counter=lambda: now))
    for name in runner_loop.turns(list(costs), ANCHOR_SHARE, random.Random(0)):  # type: ignore[arg-type,assignment]
        seen.append(str(name))
        now += costs[str(name)]
    assert sorted(name for name in seen if name != "anchor") == sorted(list(costs)[1:])
    assert shares[0] <= seen.count("anchor") / now <= shares[1]


def test_without_an_anchor_all_programs_run_alike_often() -> None:
    names = ["a", "b", "c"]
    assert sorted(map(str, runner_loop.turns(names, 0.0, random.Random(0)))) == names  # type: ignore[arg-type]


def test_a_scheduler_that_takes_the_core_away_at_a_beat_interrupts_all_programs_alike() -> None:
    names, chance, now = list("abcde"), random.Random(0), 0.0
    interrupted = dict.fromkeys(names, 0)
    for _ in range(1000):
        for name in runner_loop.turns(names, 0.0, chance):  # type: ignore[arg-type]
            before, now = now, now + 0.6
            interrupted[str(name)] += int(now / 3.0) - int(before / 3.0)  # the beat is that of a pass: 3 ms
    assert min(interrupted.values()) > 0.7 * max(interrupted.values())


@pytest.mark.parametrize(
    ("lengths", "run_ms", "untimed"), [(1, 0.4, 5), (1, 1.0, 4), (1, 8.0, 3), (1, 30.0, 1), (2, 0.1, 1)]
)
def test_a_network_settles_before_it_is_timed(
    lengths: int, run_ms: float, untimed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ran, walked = 0.0, list[int](), list[int]()

    def run(which: int) -> int:
        nonlocal now
        now += run_ms / 1e3
        ran.append(which)
        return len(ran)

    monkeypatch.setattr(runner_loop, "time", SimpleNamespace(perf_counter=lambda: now))
    network = SimpleNamespace(lengths=lengths, run=run, walk=lambda: walked.append(len(ran)))
    timed = runner_loop.Timed("network", network, {}, has_steps=True)  # type: ignore[arg-type]
    runner_loop.visit(timed, 0, {"runs": 3, "walks": 4, "settle_ms": 1.8}, np.ones(8, dtype=np.float32))
    assert timed.times[0] == [untimed + 1, untimed + 2, untimed + 3]
    assert walked == [untimed + 3] * 12


def test_blocks_of_operators_add_up_to_those_of_their_network() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.where(rng.random(800) < 0.45, 150, 100) for _ in range(2))  # others use the core at times
    network = first + second

    def missed(statistic: Callable[[Sequence[float]], float]) -> float:
        return abs((statistic(first) + statistic(second)) / statistic(network) - 1)

    assert missed(lambda times: float(np.mean(runner_loop.block_means(times, 8)))) < 0.02
    assert missed(lambda times: float(np.median(times))) > 0.15


def test_interruptions_do_not_count() -> None:
    times = np.full(200, 100)
    times[[17, 90, 91]] = 10_000
    np.testing.assert_allclose(runner_loop.block_means(times.tolist(), 8), 100, rtol=1e-5)


@pytest.mark.parametrize("count", [4, 9, 19, 20, 39, 40, 100])
def test_the_same_share_is_left_out_of_few_runs_and_many(count: int) -> None:
    left_out = 0.05 * count
    slow = max(0.0, 1.0 - left_out)  # what is left of the slow run
    expected = (300 * slow + 100 * (count - left_out - slow)) / (count - left_out)
    times = [100.0] * count
    times[count // 2] = 300.0
    assert runner_loop.block_means(times, 1) == pytest.approx([expected])


@pytest.mark.parametrize(
    ("times", "blocks", "means"),
    [
        ([5], 8, [5.0]),
        ([4, 8], 8, [4.0, 8.0]),
        ([7] * 40, 8, [7.0] * 8),
        ([1] * 38 + [9, 9], 20, [1.0] * 19 + [9.0]),
    ],
)
def test_no_block_is_empty(times: list[int], blocks: int, means: list[float]) -> None:
    assert runner_loop.block_means(times, blocks) == pytest.approx(means)
