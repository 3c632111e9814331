"""The pace: the share of time that the monitor takes, and surprises."""

from __future__ import annotations

import pytest

from autotailor.runtime.serving.pace import DEBT_S, MOST_S, SHARE, Pace

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
def test_in_the_long_run_no_more_than_the_share_is_spent(is_surprise: bool) -> None:
    pace = Pace()
    spent = learnt(pace, 20.0, 0.0005, is_surprise) * STEP_S
    most = SHARE * 20.0 + MOST_S + DEBT_S + STEP_S
    assert 0.9 * SHARE * 20.0 < spent <= most


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
