"""What sensors have in common: files of ``/sys`` that are read again and again, and joules that follow from them."""

from __future__ import annotations

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
        name: for messages.
        paths: the files to read each time.
    """

    name: str
    paths: tuple[str, ...]

    @abstractmethod
    def joules(self, seconds: Sequence[float], files: Sequence[Files]) -> FloatArray:
        """Joules that have flown since the first reading, for each reading ``[n]``; NaN where one cannot be read.

        Args:
            seconds: when each reading was taken.
            files: what stood in ``paths`` then.
        """


class Gauge(Sensor):
    """A sensor that tells power."""

    @abstractmethod
    def watts(self, files: Files) -> float:
        """Power at one moment; NaN where it cannot be read."""

    def joules(self, seconds: Sequence[float], files: Sequence[Files]) -> FloatArray:
        """Power in between two readings is interpolated."""
        watts = [self.watts(reading) for reading in files]
        from scipy.integrate import cumulative_trapezoid

        return np.asarray(cumulative_trapezoid(watts, seconds, initial=0.0), dtype=np.float64)


def value(files: Files, path: str) -> float:
    """The number in a file; NaN where it is missing or no number."""
    try:
        return float(files[path])
    except (KeyError, ValueError):
        return float("nan")


def readable(files: Files, path: str) -> bool:
    """Whether a file holds a number."""
    return not np.isnan(value(files, path))


def folders(files: Files, pattern: str) -> list[str]:
    """Folders (sorted) that hold a file of the name with which the pattern ends: ``class/hwmon/hwmon*/name``."""
    start, _, rest = pattern.partition("*")
    end = rest.rpartition("/")[2]
    return sorted(path.rpartition("/")[0] for path in files if path.startswith(start) and path.endswith(f"/{end}"))
