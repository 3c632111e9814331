"""The stopwatch, against threads that compute and threads that sleep."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from autotailor.runtime.serving import clock
from autotailor.runtime.serving.clock import MILLION, Stopwatch


def compute(cpu_s: float) -> None:
    """Computes until its thread has used so much CPU time."""
    end = time.thread_time() + cpu_s
    while time.thread_time() < end:
        pass


def test_sleeping_takes_wall_time_and_no_cpu_time() -> None:
    with Stopwatch() as watch:
        time.sleep(0.05)
        compute(0.01)
    assert watch.wall_ms >= 60
    assert 10 <= watch.cpu_ms < watch.wall_ms - 30


def test_cpu_time_of_another_thread_does_not_count() -> None:
    other = threading.Thread(target=compute, args=(0.2,))
    other.start()
    with Stopwatch() as watch:
        compute(0.02)
    other.join()
    assert 20 <= watch.cpu_ms < 60


def test_of_two_threads_the_mean_counts_without_the_one_aside() -> None:
    stop = threading.Event()

    def aside() -> None:
        while not stop.is_set():
            compute(0.001)

    beside = threading.Thread(target=aside)
    beside.start()
    with Stopwatch(threads=2, aside=beside) as watch:
        compute(0.1)
    stop.set()
    beside.join()
    assert 50 <= watch.cpu_ms < 75


def test_work_of_the_thread_aside_between_two_readings_of_clocks_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clocks of which each reading takes time; the thread aside works for 5 ms between the first and the second."""
    process, aside, read = 100 * MILLION, 40 * MILLION, itertools.count()

    def tick() -> None:
        nonlocal process, aside
        worked = 5 * MILLION if next(read) == 1 else 0
        process, aside = process + worked + 1000, aside + worked

    def of_process() -> int:
        tick()
        return int(process)

    def of_aside(_: int) -> int:
        tick()
        return int(aside)

    beside = threading.current_thread()
    with monkeypatch.context() as patched:
        patched.setattr(clock.time, "process_time_ns", of_process)
        patched.setattr(clock.time, "clock_gettime_ns", of_aside)
        with Stopwatch(threads=2, aside=beside) as watch:
            process += 8 * MILLION
    assert 4 <= watch.cpu_ms < 4.1


def test_a_thread_aside_that_has_ended_counts_for_nothing() -> None:
    ended = threading.Thread(target=compute, args=(0.01,))
    ended.start()
    ended.join()
    with Stopwatch(threads=2, aside=ended) as watch:
        compute(0.02)
    assert 10 <= watch.cpu_ms < 20
