"""Reads a sensor on the device while the device works, to learn the power above idle.

A shell script wraps the command that does the work. Every ``PERIOD`` seconds the script prints a reading of the
sensor's files into the stream of the command's own lines. So the order of lines tells what ran at each reading, and the
device and this computer need no common clock. Before the work starts, only the readings run. The idle power therefore
contains the power of the readings, and subtracting the idle power removes both.
"""

import math
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from autotailor.profiling.energy.base import Files, Sensor

PERIOD = 0.1
"""Seconds between readings; the monitors of Jetsons and phones renew their values every 0.05 to 1 s."""
IDLE_SECONDS = 3.0
MARK = "sensor:"
LEAST_READINGS = 5

SCRIPT = f"""
idle=$1 period=$2 count=$3
shift 3
files= n=0
while [ $n -lt $count ]; do files="$files $1"; n=$((n+1)); shift; done
main=$$
( while [ -e /proc/$main/cwd ]; do
    {{ IFS=' ' read -r line rest < /proc/uptime; }} 2>/dev/null
    for file in $files; do
      value=
      {{ IFS= read -r value < "$file"; }} 2>/dev/null
      line="$line ${{value:-nan}}"
    done
    echo "{MARK} $line"
    sleep $period
  done ) &
sleep $idle
exec "$@"
"""
"""The script's process becomes the command (``exec``). Readings stop when that process is dead, because the link
``/proc/PID/cwd`` of a dead process leads nowhere."""

LONGEST = 2000
"""Characters of a reading's line that are parsed."""
MOST_READINGS = 10**6
"""Readings that are kept, which is about a day's. The limit protects the memory against a device that prints more."""


def _seconds(text: str) -> float:
    """A time of the device's clock; NaN where the text is no time."""
    try:
        seconds = float(text)
    except ValueError:
        return math.nan
    return seconds if 0 <= seconds < math.inf else math.nan


class Watch:
    """Readings of one run of a command.

    Args:
        sensor: the sensor that is read.
        root: where the device's ``/sys`` is.
        idle_seconds: how long only the readings run before the command starts.
    """

    def __init__(self, sensor: Sensor, root: PurePosixPath, idle_seconds: float = IDLE_SECONDS) -> None:
        self.sensor = sensor
        self.root = root
        self.idle_seconds = idle_seconds
        self.seconds: list[float] = []
        self.files: list[Files] = []

    def command(self, work: Sequence[str]) -> list[str]:
        """The command that does the work and prints readings meanwhile."""
        paths = [str(self.root / path) for path in self.sensor.paths]
        numbers = [str(self.idle_seconds), str(PERIOD), str(len(paths))]
        return ["sh", "-c", SCRIPT, "watch", *numbers, *paths, *work]

    def take(self, line: str) -> bool:
        """Takes in a line of output; returns whether the line is a reading."""
        if not line.startswith(MARK):
            return False
        first, *values = line.removeprefix(MARK)[:LONGEST].split() or [""]
        seconds = _seconds(first)
        if len(values) == len(self.sensor.paths) and seconds >= self.now and len(self.seconds) < MOST_READINGS:
            self.seconds.append(seconds)
            self.files.append(dict(zip(self.sensor.paths, values, strict=True)))
        return True

    @property
    def now(self) -> float:
        """When the last reading was taken, in seconds of the device's clock; 0 before the first reading."""
        return self.seconds[-1] if self.seconds else 0.0

    def idle_watts(self) -> float:
        """Mean power before the work began; NaN where it is unavailable."""
        return self._watts(self.seconds[0], self.seconds[0] + self.idle_seconds - PERIOD) if self.seconds else np.nan

    def watts(self, start: float, end: float) -> float:
        """Mean power above idle between two moments of the device's clock; NaN where it is unavailable."""
        return self._watts(start, end) - self.idle_watts()

    def _watts(self, start: float, end: float) -> float:
        inside = [i for i, second in enumerate(self.seconds) if start <= second <= end]
        if len(inside) < LEAST_READINGS:
            return np.nan
        joules = self.sensor.joules([self.seconds[i] for i in inside], [self.files[i] for i in inside])
        return float(joules[-1] / (self.seconds[inside[-1]] - self.seconds[inside[0]]))
