"""Images per second and time left, by a clock that the test sets."""

from datetime import timedelta

import pytest

from autotailor.finetuning.training import pace
from autotailor.finetuning.training.pace import Pace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    return now


def test_the_rate_leaves_out_evaluations_and_the_time_left_counts_them(clock: list[float]) -> None:
    measured = Pace(steps=10)
    for _ in range(4):
        clock[0] += 0.5
        measured.step(32)
    clock[0] += 6.0  # an evaluation
    measured.resume()
    clock[0] += 0.5
    measured.step(32)
    assert measured.rate() == pytest.approx(64.0)
    assert measured.left() == timedelta(seconds=8)  # five steps took 8.5 s, five are left


def test_the_cost_is_told_once_by_the_second_step(clock: list[float]) -> None:
    measured, told = Pace(steps=40), []
    for seconds in (3.0, 0.5, 0.7):  # the first step prepares kernels
        measured.resume()
        clock[0] += seconds
        measured.step(32)
        told.append(measured.cost())
    assert told == [None, timedelta(seconds=20), None]


def test_each_epoch_has_a_rate_of_its_own(clock: list[float]) -> None:
    measured = Pace(steps=2)
    assert measured.rate() is None
    for seconds in (1.0, 4.0):
        clock[0] += seconds
        measured.step(8)
        assert measured.rate() == pytest.approx(8 / seconds)
    assert measured.left() == timedelta(0)


def test_what_this_process_does_not_know_is_not_said(clock: list[float]) -> None:
    """A process that goes on behind the last step of an epoch has taken no step of this epoch."""
    measured = Pace(steps=3)
    clock[0] += 2.0
    assert (measured.left(), measured.said(measured.rate())) == (None, "")
    measured.resume()
    clock[0] += 4.0
    measured.step(1)
    assert measured.said(measured.rate()) == ", 0.25 images/s, 0:00:12 left"
    clock[0] += 2.0
    measured.step(99)
    assert measured.said(measured.rate()) == ", 50 images/s, 0:00:04 left"
