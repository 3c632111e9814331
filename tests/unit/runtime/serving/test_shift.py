"""Shifts: who runs between two steps of a preparation, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from autotailor.runtime.serving import shift
from autotailor.runtime.serving.shift import Shift
from autotailor.runtime.wire.turns import Turns

LONG = 1 << 40
"""Bytes of a step that takes longer than a shift may last."""


@contextmanager
def waiting(turns: Turns, ran: list[str]) -> Iterator[None]:
    """Another thread that wants one turn while the block runs."""

    def work() -> None:
        with turns:
            ran.append("inference")

    thread = threading.Thread(target=work)
    thread.start()
    while not turns._waiting:
        time.sleep(0.001)
    yield
    thread.join()


def test_an_inference_waits_for_the_step_and_runs_before_the_next_one_that_takes_long() -> None:
    turns, ran = Turns(), []
    work = Shift(turns)
    work.step(0)
    with waiting(turns, ran):
        ran.append("step")
        work.step(LONG)
        ran.append("step")
        work.end()
    assert ran == ["step", "inference", "step"]


def test_a_shift_behind_a_long_inference_lasts_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift, "MOST_S", 0.0)
    monkeypatch.setattr(shift, "SHARE", 1e6)  # one that waited for a microsecond works for a second
    turns, ran = Turns(), []
    work = Shift(turns)
    work.step(0)
    with waiting(turns, ran):
        work.step(LONG)
    with waiting(turns, ran):
        work.step(1000)
        ran.append("step")
        work.end()
    assert ran == ["inference", "step", "inference"]


def test_steps_that_are_short_together_are_one_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift, "MOST_S", 60.0)
    turns, ran = Turns(), []
    work = Shift(turns)
    work.step(0)
    with waiting(turns, ran):
        work.step(1000)
        work.step(1000)
        ran.append("steps")
        work.end()
    assert ran == ["steps", "inference"]


def test_what_has_passed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    turns, ran = Turns(), []
    work = Shift(turns)
    work.step(0)
    with waiting(turns, ran):
        now[0] = 0.9 * shift.MOST_S
        work.step(0)
        ran.append("first")
        now[0] = 1.1 * shift.MOST_S
        work.step(0)
        ran.append("second")
        work.end()
    assert ran == ["first", "inference", "second"]


def test_where_nothing_waits_the_work_goes_on_and_ends_once() -> None:
    turns = Turns()
    work = Shift(turns)
    for _ in range(5):
        work.step(LONG)
    work.end()
    work.end()
    with turns:
        pass
