"""The monitor: slowdowns, quantiles, steps of the load, the forecast, and how often it may learn."""

from collections import deque

import numpy as np
import pytest

from autotailor.serving.replay import Replay
from replays import member_of, ran_often

MEMBER, TINY, TWICE = (member_of(70.0, tuple(k * ms for ms in (3.0, 1.0, 0.5))) for k in (1.0, 0.001, 2.0))
MS = MEMBER.latency_ms
COMPUTE, MEMORY = member_of(70.0, (9.0, 1.0, 0.5)), member_of(70.0, (1.0, 4.0, 1.0))
SHARE, WINDOW_S, STEP_MS = 0.01, 4.0, 0.2
"""CPU time of the monitor as a share of time, in any window; and what a step is taken to cost."""
FORGETTING, PRIOR = 0.8, 0.02


def after(*runs: tuple[int, float], waited_ms: float = 0.0, step_ms: float = 0.0) -> Replay:
    """What is known after so many inferences that were slowed down so much."""
    replay = Replay([MEMBER, TINY, TWICE], step_ms=step_ms)
    for count, slowdown in runs:
        ran_often(replay, MEMBER, 0, count, slowdown, waited_ms)
    return replay


def load_of(replay: Replay, name: str) -> float:
    return float(replay.status()["load"][name])


def test_nothing_is_known_before_the_first_inference() -> None:
    assert after().bounds_ms(0.95).tolist() == pytest.approx([MS, TINY.latency_ms, 2 * MS])
    assert load_of(after(), "quantile") == 1.0


def test_the_quantile_is_one_that_the_share_of_cpu_times_met() -> None:
    replay = after((18, 1.0), (1, 1.5), (1, 1.0))
    residuals = np.array([*[1.0] * 20, 1.5])  # the prediction itself counts as one more
    bounds = {q: replay.bounds_ms(q)[0] / replay.bounds_ms(0.5)[0] for q in (0.5, 0.8, 0.95, 0.99)}
    assert all(np.mean(residuals <= bound + 1e-9) >= q for q, bound in bounds.items())
    assert replay.bounds_ms(0.5)[0] < 1.12 * MS
    assert bounds[0.99] == pytest.approx(1.5, rel=1e-3)


def test_a_step_of_the_cpu_time_is_followed_at_its_second_inference() -> None:
    replay = after((30, 1.0), (2, 3.0))
    assert replay.bounds_ms(0.95)[0] == pytest.approx(3 * MS, rel=0.01)
    assert load_of(replay, "quantile") == 1.0


def test_a_single_outlier_is_no_step_and_teaches_the_load_model_nothing() -> None:
    replay = after((30, 1.0), (1, 3.0))
    assert load_of(replay, "slowdown") == pytest.approx(1.0)
    assert replay.bounds_ms(1.0)[0] == pytest.approx(3 * MS)
    ran_often(replay, MEMBER, 0, 1)
    assert replay.bounds_ms(0.5)[0] == pytest.approx(MS)


def test_waiting_is_added_to_the_cpu_time_and_is_no_factor_of_it() -> None:
    replay = after((40, 1.0), waited_ms=6.0)
    assert load_of(replay, "slowdown") == pytest.approx(1.0)
    assert load_of(replay, "waiting") == pytest.approx(6.0 / MS)
    once, tiny, twice = replay.bounds_ms(0.95)
    assert (once, twice) == (pytest.approx(MS + 6.0, rel=0.15), pytest.approx(2 * (MS + 6.0), rel=0.15))
    assert tiny < 0.2 * once


def test_one_late_inference_is_an_accident_and_a_few_are_not() -> None:
    replay = after((60, 1.0))
    ran_often(replay, MEMBER, 0, 1, waited_ms=6.0)
    assert replay.bounds_ms(0.95)[0] == pytest.approx(MS)
    ran_often(replay, MEMBER, 0, 3, waited_ms=6.0)
    assert replay.bounds_ms(0.95)[0] >= MS + 3.0


def test_an_inference_that_is_not_learnt_from_counts_for_the_quantiles_alone() -> None:
    replay = after((1, 1.0), step_ms=1000.0)  # which has spent what it may for long
    ran_often(replay, MEMBER, 0, 1, 1.4)
    assert load_of(replay, "slowdown") == pytest.approx(1.0)
    assert replay.bounds_ms(0.99)[0] == pytest.approx(1.4 * MS)


def test_the_slowdowns_minimise_the_weighted_squares() -> None:
    rng = np.random.default_rng(0)
    splits = rng.uniform(0.1, 5, (25, 3))
    replay = Replay([member_of(70.0, tuple(split)) for split in splits])
    rows, values, weights, ratio = [*np.eye(3)], [1.0, 1.0, 1.0], [PRIOR] * 3, 1.0
    for number, split in enumerate(splits):
        cpu = float(split @ [1.2, 1.4, 1.0]) * rng.uniform(0.9, 1.1)
        replay.ran(number, cpu, cpu)
        ratio = FORGETTING * ratio + (1 - FORGETTING) * cpu / split.sum()
        weights = [FORGETTING * weight for weight in weights] + [1.0] + [(1 - FORGETTING) * PRIOR] * 3
        rows += [split / split.sum(), *np.eye(3)]
        values += [cpu / split.sum(), ratio, ratio, ratio]
        root = np.sqrt(weights)
        expected = np.linalg.lstsq(np.array(rows) * root[:, None], np.array(values) * root, rcond=None)[0]
        found = [load_of(replay, f"slowdown_{name}") for name in ("compute", "memory", "fixed")]
        assert found == pytest.approx(expected, rel=1e-8)


def test_two_members_tell_the_classes_apart_and_one_alone_leaves_one_ratio() -> None:
    both, alone = Replay([COMPUTE, MEMORY]), Replay([COMPUTE, MEMORY])
    for _ in range(30):
        for number, member in enumerate((COMPUTE, MEMORY)):
            cpu = float(np.dot(member.split_ms, [1.05, 1.5, 1.0]))
            both.ran(number, cpu, cpu)
        ran_often(alone, COMPUTE, 0, 2, 1.5)
    assert load_of(both, "slowdown_memory") / load_of(both, "slowdown_compute") > 1.3
    assert both.bounds_ms(0.5)[1] == pytest.approx(np.dot(MEMORY.split_ms, [1.05, 1.5, 1.0]), rel=0.03)
    assert alone.bounds_ms(0.5)[1] == pytest.approx(1.5 * MEMORY.latency_ms, rel=0.01)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_wave_is_forecast_once_the_backtest_is_complete(steps: int) -> None:
    wave = [1.2 + 0.2 * float(np.sin(0.6 * i)) for i in range(153)]
    replay, ratio, ratios = Replay([MEMBER], horizon=steps), 1.0, []
    for number, slowdown in enumerate(wave[:150]):
        if number == 23:  # of 24 values 16 have been forecast
            assert load_of(replay, "forecast") == 1.0
        ran_often(replay, MEMBER, 0, 1, slowdown)
    for slowdown in wave:
        ratio = FORGETTING * ratio + (1 - FORGETTING) * slowdown
        ratios.append(ratio)
    assert load_of(replay, "forecast") == pytest.approx(ratios[149 + steps] / ratios[149], rel=1e-4)
    assert abs(load_of(replay, "forecast") - 1) > 0.01


def test_a_constant_load_has_a_forecast_too() -> None:
    """Columns of the design that are all alike have no unique solution."""
    replay = Replay([MEMBER], horizon=3)
    ran_often(replay, MEMBER, 0, 40)
    assert load_of(replay, "forecast") == 1.0
    assert replay.choose(0).latency_ms == pytest.approx(MS, rel=1e-9)


class Paced:
    """A replay in which each step of the monitor costs the same, and time."""

    def __init__(self) -> None:
        self.replay, self.now = Replay([MEMBER], step_ms=STEP_MS), 0.0

    def learnt(self, seconds: float, every_s: float, is_surprise: bool = False) -> int:
        """Inferences of ``seconds`` that are learnt from."""
        before = self.spent_s
        for _ in range(round(seconds / every_s)):
            self.now += every_s
            self.replay.at(self.now)
            self.replay.ran(0, 3 * MS if is_surprise else MS, MS)
        return round((self.spent_s - before) / STEP_MS * 1000)

    @property
    def spent_s(self) -> float:
        return float(self.replay.status()["monitor_cpu_seconds"])


@pytest.mark.parametrize("is_surprise", [False, True])
@pytest.mark.parametrize("seconds", [WINDOW_S, 5.0, 9.0])
def test_no_more_than_the_share_is_spent_from_the_first_inference_on(is_surprise: bool, seconds: float) -> None:
    spent = Paced().learnt(seconds, 0.001, is_surprise) * STEP_MS / 1000
    assert 0.7 * SHARE * seconds < spent <= SHARE * seconds + STEP_MS / 1000


def test_no_more_than_the_share_is_spent_when_surprises_follow_a_quiet_time() -> None:
    paced = Paced()
    paced.learnt(10.0, 1.0)  # the allowance is saved up
    assert paced.learnt(WINDOW_S, 0.0005, True) * STEP_MS / 1000 <= SHARE * WINDOW_S + STEP_MS / 1000


def test_rare_inferences_are_all_learnt_from_and_surprises_on_credit() -> None:
    paced = Paced()
    assert paced.learnt(10.0, 0.05) == 200
    deque((paced.learnt(0.01, 0.0005) for _ in range(100)), maxlen=0)  # the allowance has ended
    assert paced.learnt(0.001, 0.0005) == 0
    assert paced.learnt(0.01, 0.0005, True) == 20
