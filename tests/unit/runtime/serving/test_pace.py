"""The pace: the share of time that the monitor takes, and surprises."""

from __future__ import annotations

import pytest

from autotailor.runtime.serving.pace import MOST_S, SHARE, WINDOW_S, Pace

STEP_S = 0.0002


def learnt(pace: Pace, seconds: float, every_s: float, is_surprise: bool) -> int:
    """Inferences of ``seconds`` that are learnt from, each step taking ``STEP_S`` of CPU time."""
    count, now = 0, pace._now_s or 0.0
    for _ in range(round(seconds / every_s)):
        now += every_s
        if pace.allows(now, is_surprise):
            pace.left_s -= STEP_S
            count += 1
    return count


@pytest.mark.parametrize("is_surprise", [False, True])
@pytest.mark.parametrize("seconds", [WINDOW_S, 5.0, 20.0])
def test_no_more_than_the_share_is_spent_from_the_first_inference_on(is_surprise: bool, seconds: float) -> None:
    spent = learnt(Pace(), seconds, 0.0005, is_surprise) * STEP_S
    assert 0.7 * SHARE * seconds < spent <= SHARE * seconds + STEP_S


def test_no_more_than_the_share_is_spent_when_surprises_follow_a_quiet_time() -> None:
    pace = Pace()
    learnt(pace, 10.0, 1.0, False)  # the allowance is saved up
    assert learnt(pace, WINDOW_S, 0.0005, True) * STEP_S <= SHARE * WINDOW_S + STEP_S


def test_rare_inferences_are_all_learnt_from() -> None:
    assert learnt(Pace(), 10.0, 0.05, False) == 200


def test_a_surprise_is_learnt_from_where_the_allowance_has_ended() -> None:
    pace = Pace()
    learnt(pace, 1.0, 0.0005, False)
    while pace.allows(pace._now_s, False):
        pace.left_s -= STEP_S
    assert not pace.allows(pace._now_s, False)
    assert pace.allows(pace._now_s, True)
    assert learnt(pace, 0.01, 0.0005, True) == 20


def test_what_a_step_takes_is_measured() -> None:
    pace = Pace()
    with pace.spending():
        sum(range(200_000))
    assert pace.spent_s > 0
    assert pace.left_s == pytest.approx(MOST_S - pace.spent_s)
