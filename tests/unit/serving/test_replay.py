"""Replays: the time of a recording, the quota that it says, and what is refused."""

import numpy as np
import pytest

from autotailor.serving import PoolError
from autotailor.serving.replay import Choice, Quota, Replay
from replays import member_of

PERIOD_MS = 20.0
MEMBERS = [member_of(70.0 + 10 * i, (ms, 0.0, 0.0)) for i, ms in enumerate((3.0, 12.0, 40.0))]


def followed(threads: int) -> Replay:
    """A replay whose largest member has run without a pause under a quota of 80 %."""
    replay = Replay(MEMBERS, threads, deadline_ms=70.0, quantile=0.9, dwell_s=0.0)
    replay.at(1.0, Quota(0.8 * threads, PERIOD_MS))
    assert replay.choose(2).member == 2
    ends = np.cumsum(np.full(20, 40.0)) + 0.37
    for stops in np.diff(np.concatenate(([0.0], np.floor(ends / (0.8 * PERIOD_MS))))):
        replay.ran(2, 40.0 + float(stops) * 0.2 * PERIOD_MS, 40.0)
    return replay


@pytest.mark.parametrize("threads", [1, 2])
def test_a_quota_that_falls_is_followed_before_an_inference_is_late(threads: int) -> None:
    replay = followed(threads)
    assert replay.choose(2).member == 2
    replay.at(1.2, Quota(0.4 * threads, PERIOD_MS))  # 40 ms of CPU time take 100 ms
    choice = replay.choose(2)
    assert (choice.member, choice.event) == (1, "down")
    assert replay.status()["load"]["waiting"] == pytest.approx(1 / 0.4 - 1)
    replay.at(1.4, Quota(0.8 * threads, PERIOD_MS))
    assert replay.choose(1).member == 2
    replay.at(1.6)
    assert replay.choose(2).member == 2
    assert replay.status()["load"]["waiting"] == 0.0


def test_a_process_that_pauses_is_not_slowed_down_by_a_smaller_quota() -> None:
    replay = Replay(MEMBERS, deadline_ms=70.0, quantile=0.9)
    replay.at(1.0, Quota(0.8, PERIOD_MS))
    replay.choose(2)
    for second in range(2, 22):
        replay.at(second, Quota(0.8, PERIOD_MS))
        replay.ran(2, 40.0, 40.0)
    replay.at(23.0, Quota(0.4, PERIOD_MS))
    assert replay.choose(2).member == 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("is_read", [True, False])
def test_the_threads_of_all_requests_together_keep_within_a_quota(threads: int, is_read: bool) -> None:
    for share, member in ((0.75, 1), (0.85, 2)):  # 20 times 40 ms in a second are 0.8 cores for each thread
        replay = Replay(MEMBERS, threads, deadline_ms=70.0, rate=20.0)
        if is_read:
            replay.at(1.0, Quota(share * threads, PERIOD_MS))
        else:
            replay.set(quota=share * threads)
        assert replay.choose(2).member == member


def test_a_request_may_have_a_deadline_of_its_own_and_a_member_may_be_pinned() -> None:
    replay = Replay(MEMBERS, deadline_ms=70.0)
    assert replay.choose(2, 20.0) == Choice(1, "down", 12.0)
    replay.set(pin="0")
    assert (replay.choose(2).member, replay.choose(2).event) == (0, "pinned")
    replay.set(pin=None)
    assert replay.status()["settings"]["pin"] is None


def test_it_gives_the_same_choices_each_time() -> None:
    bounds = [followed(1).bounds_ms(0.9) for _ in range(2)]
    np.testing.assert_array_equal(*bounds)
    assert bounds[0].shape == (3,)


@pytest.mark.parametrize(("wall", "cpu"), [(0.0, 1.0), (1.0, 0.0), (float("nan"), 1.0)])
def test_impossible_times_are_refused(wall: float, cpu: float) -> None:
    with pytest.raises(PoolError, match="positive times"):
        Replay(MEMBERS).ran(0, wall, cpu)


def test_what_makes_no_sense_is_named() -> None:
    replay = Replay(MEMBERS)
    replay.at(2.0)
    for call, message in (
        (lambda: replay.at(1.0), "the time went back"),
        (lambda: replay.at(3.0, Quota(0.0)), "cores and a period, both positive"),
        (lambda: replay.choose(3), "no member 3: there are 3"),
        (lambda: replay.ran(9, 1.0, 1.0), "no member 9"),
        (lambda: replay.choose(0, -1.0), "the deadline is no time"),
        (lambda: replay.best_of([]), "expected members to choose from"),
        (lambda: replay.bounds_ms(0.0), "a probability above 0"),
        (lambda: Replay([]), "at least one member"),
        (lambda: Replay(MEMBERS, 0), "at least one thread"),
        (lambda: Replay(MEMBERS, step_ms=-1.0), "not a negative time"),
        (lambda: Replay([member_of(float("nan"), (1.0, 0.0, 0.0))]), "member 0 needs a finite accuracy"),
        (lambda: Replay([member_of(1.0, (0.0, 0.0, 0.0))]), "a positive sum"),
        (lambda: Replay([member_of(1.0, (3.0, -1.0, 0.0))]), "a positive sum"),
    ):
        with pytest.raises(PoolError, match=message):
            call()
