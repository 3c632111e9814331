"""The finding of one check of a device."""

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
        check: name of the check.
        verdict: how the check ended; UNAVAILABLE where the device gives no information.
        detail: what the check found.
        remedy: what the user can do; empty where nothing needs to be done.
    """

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON, under the headings of the table."""
        return {"check": self.check, "verdict": self.verdict.value, "found": self.detail, "remedy": self.remedy}
