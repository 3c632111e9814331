"""What one check of a device has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """How a check ended."""

    GOOD = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        check: what was looked at.
        verdict: how it ended; UNAVAILABLE where the device does not say.
        detail: what was found.
        remedy: what to do about it; empty where nothing is to be done.
    """

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""
