"""What sensors have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path


class Counter(ABC):
    """A sensor that counts energy.

    Attributes:
        name: for messages.
    """

    name: str

    @abstractmethod
    def joules(self) -> float:
        """Joules since the first call; to be called at least once for each time the hardware's counter wraps."""


class Gauge(ABC):
    """A sensor that tells power.

    Attributes:
        name: for messages.
    """

    name: str

    @abstractmethod
    def watts(self) -> float:
        """Power at this moment."""


Sensor = Counter | Gauge


def number(path: Path) -> float | None:
    """The number in a file of sysfs; None where it is missing, not readable, or no number."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None


def text(path: Path) -> str:
    """The word in a file of sysfs; empty where it is missing or not readable."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
