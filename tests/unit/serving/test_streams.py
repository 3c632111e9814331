"""Streams of easy and hard pictures: when pictures leave, what the choice learns of load, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.serving import PoolError
from autotailor.serving.files import Member
from autotailor.serving.files.exits import Exit
from autotailor.serving.streams import Known, Passage, hard_pictures, read_known, replay_stream, summed
from replays import member_of

EASY, HARD = Passage(400, 0.0), Passage(400, 1.0)


def early(name: str, accuracy: float, whole: float) -> Member:
    """A member with two exits, at 30 and 60 % of its latency."""
    exits = tuple(Exit(f"stage{n}", accuracy - 10 * (3 - n), 0.3 * n * whole, f"out{n}") for n in (1, 2))
    thresholds = (("60%", (0.75, None)), ("none", (None, None)))
    return replace(member_of(accuracy, (whole, 0.0, 0.0)), name=name, exits=exits, thresholds=thresholds)


def known(pictures: int = 200) -> Known:
    """Exits that are the surer the higher the picture's number is, and right about the surer half; the end is right."""
    sure = np.linspace(0.0, 1.0, pictures)
    right = (sure > 0.5).astype(float)
    return Known(np.stack([sure, sure], axis=1), np.stack([right, right, np.ones(pictures)], axis=1))


MEMBER, ANSWERS = early("a", 90.0, 10.0), {"a": known()}


def test_hard_are_the_pictures_of_which_exits_are_least_sure() -> None:
    np.testing.assert_array_equal(hard_pictures(ANSWERS), np.arange(200) < 100)


def test_easy_pictures_leave_early_and_hard_ones_go_to_the_end() -> None:
    found = replay_stream([MEMBER], ANSWERS, [EASY, HARD], 100.0, "60 %")
    first, second = (summed([each for each in found if each.passage == number]) for number in (0, 1))
    assert (first.hard, second.hard) == (0.0, 1.0)
    assert first.exits["a", "stage1"] == pytest.approx(0.5, abs=0.08)  # a threshold of 0.75 in the half above 0.5
    assert second.exits == {("a", "last"): 1.0}
    assert second.latency_ms == pytest.approx(10.0, rel=0.02)
    assert first.latency_ms == pytest.approx(10.0 - 7.0 * first.exits["a", "stage1"], rel=0.02)
    assert (first.in_time, second.in_time, first.accuracy, second.accuracy) == (1.0, 1.0, 1.0, 1.0)


def test_at_a_deadline_the_last_exit_that_is_done_answers_and_hard_pictures_suffer() -> None:
    found = replay_stream([MEMBER], ANSWERS, [EASY, HARD], 8.0, "none")
    first, second = (summed([each for each in found if each.passage == number]) for number in (0, 1))
    assert first.exits == second.exits == {("a", "stage2"): 1.0}
    assert (first.in_time, second.in_time) == (1.0, 1.0)
    assert (first.accuracy, second.accuracy) == (1.0, 0.0)
    assert first.latency_ms == pytest.approx(8.0)


def test_an_answer_is_late_where_the_first_exit_is() -> None:
    found = replay_stream([MEMBER], ANSWERS, [Passage(50, 0.5, 1.0), Passage(50, 0.5, 4.0)], 8.0)
    shares = [summed([each for each in found if each.passage == number]).in_time for number in (0, 1)]
    assert shares == [1.0, 0.0]


def test_under_load_a_smaller_member_runs() -> None:
    members = [early("small", 80.0, 4.0), early("large", 90.0, 10.0)]
    answers = {"small": known(), "large": known()}
    found = replay_stream(members, answers, [Passage(100, 0.5), Passage(100, 0.5, 2.2)], 12.0)
    first, second = ([each.member for each in found if each.passage == number] for number in (0, 1))
    assert set(first) == {"large"}
    assert second.count("small") > 80


def test_the_same_seed_gives_the_same_stream() -> None:
    one, other, third = (replay_stream([MEMBER], ANSWERS, [EASY], 9.0, "60%", seed) for seed in (1, 1, 2))
    assert one == other != third


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="a share from 0 to 1"):
        Passage(10, 1.5)
    with pytest.raises(PoolError, match="deadline of 0 ms"):
        replay_stream([MEMBER], ANSWERS, [EASY], 0.0)
    with pytest.raises(PoolError, match="no member has exits"):
        replay_stream([MEMBER], {"a": Known(np.zeros((9, 0)), np.ones((9, 1)))}, [EASY], 1.0)
    with pytest.raises(PoolError, match="name the folder exits of a finished run"):
        read_known(tmp_path, [MEMBER])
