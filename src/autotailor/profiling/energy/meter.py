"""Energy of a workload above idle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from autotailor.profiling.energy.base import Counter, Sensor

PERIOD = 0.05
"""Seconds between readings: as often as Jetson's monitor renews its values, and far below a counter's wrap."""


class Meter:
    """Adds up what a sensor tells in a thread of its own.

    >>> meter.calibrate(5.0)  # while nothing runs
    >>> with meter.reading() as energy:
    ...     work()
    >>> energy.joules
    """

    def __init__(self, sensor: Sensor, period: float = PERIOD) -> None:
        self.sensor = sensor
        self.period = period
        self.idle_watts = 0.0

    def calibrate(self, seconds: float) -> float:
        """Measures the idle power, in watts, which is taken off from then on."""
        self.idle_watts = 0.0
        with self.reading() as idle:
            time.sleep(seconds)
        self.idle_watts = idle.joules / idle.seconds
        return self.idle_watts

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Reads while the block runs."""
        reading, stop = Reading(self.sensor), threading.Event()

        def read() -> None:
            while not stop.wait(self.period):
                reading.take()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield reading
        finally:
            stop.set()
            thread.join()
            reading.take()
            reading.joules -= self.idle_watts * reading.seconds


class Reading:
    """What one block has used.

    Attributes:
        joules: above idle, once the block has ended.
        seconds: how long it took.
    """

    def __init__(self, sensor: Sensor) -> None:
        self.sensor = sensor
        self.joules = self.seconds = 0.0
        self._time = time.monotonic()
        self._before = self._value()

    def _value(self) -> float:
        return self.sensor.joules() if isinstance(self.sensor, Counter) else self.sensor.watts()

    def take(self) -> None:
        """Adds what has flown since the last reading; power is interpolated in between."""
        now, value = time.monotonic(), self._value()
        passed = now - self._time
        self.joules += value - self._before if isinstance(self.sensor, Counter) else (value + self._before) / 2 * passed
        self.seconds += passed
        self._time, self._before = now, value
