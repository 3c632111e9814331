"""What all sensors have in common: files of ``/sys`` are read again and again, and joules follow from the readings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Files = Mapping[str, str]
"""Path below ``/sys`` to the file's first line."""
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sensor(ABC):
    """A sensor of energy or power.

    Attributes:
        name: the sensor's name, for messages.
        paths: the files that each reading reads.
    """

    name: str
    paths: tuple[str, ...]

    @abstractmethod
    def joules(self, seconds: Sequence[float], files: Sequence[Files]) -> FloatArray:
        """Energy since the first reading in joules, for each reading ``[n]``; NaN where a reading is missing.

        Args:
            seconds: when each reading was taken.
            files: the content of ``paths`` at each reading.
        """


class Gauge(Sensor):
    """A sensor that measures power."""

    @abstractmethod
    def watts(self, files: Files) -> float:
        """Power at one moment; NaN where it cannot be read."""

    def joules(self, seconds: Sequence[float], files: Sequence[Files]) -> FloatArray:
        """Integrates the power, which is interpolated linearly between two readings."""
        watts = [self.watts(reading) for reading in files]
        from scipy.integrate import cumulative_trapezoid

        return np.asarray(cumulative_trapezoid(watts, seconds, initial=0.0), dtype=np.float64)


def value(files: Files, path: str) -> float:
    """The number in a file; NaN where the file is missing or holds no number."""
    try:
        return float(files[path])
    except (KeyError, ValueError):
        return float("nan")


def readable(files: Files, path: str) -> bool:
    """Whether a file holds a number."""
    return not np.isnan(value(files, path))


def folders(files: Files, pattern: str) -> list[str]:
    """Sorted folders with a file that matches a pattern: for ``class/hwmon/hwmon*/name`` the monitors' folders."""
    start, _, rest = pattern.partition("*")
    end = rest.rpartition("/")[2]
    return sorted(path.rpartition("/")[0] for path in files if path.startswith(start) and path.endswith(f"/{end}"))
