"""Runs the checks of an accelerator one after another; each tells its own error, and the next one follows."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from autotailor.commands.doctor.accelerator import evaluating, training
from autotailor.commands.doctor.accelerator.lab import Lab
from autotailor.commands.doctor.accelerator.speed import speed
from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.compute.memory import free_memory
from autotailor.ir.errors import AutoTailorError

CHECKS: Mapping[str, Callable[[Lab], training.Numbers | None]] = {
    "hardware": evaluating.hardware,
    "step": training.compared_step,
    "calibration": evaluating.calibration,
    "memory": training.memory,
    "speed": speed,
    "sensitivity": evaluating.single_modifications,
    "moments": evaluating.moments,
    "finetune": training.finetune,
    "polish": training.polish,
    "resumption": training.resumption,
    "tests": evaluating.tests,
}


@dataclass(frozen=True)
class Part:
    """The outcome of one check.

    Attributes:
        name: of CHECKS.
        verdict: how it ended; UNAVAILABLE where it could not be made here.
        seconds: that it took.
        numbers: what it found.
        error: what went wrong, in one line.
        trace: where, for a report; empty for errors that say it themselves.
    """

    name: str
    verdict: Verdict
    seconds: float = 0.0
    numbers: Mapping[str, float | int | str | None] = field(default_factory=dict)
    error: str = ""
    trace: str = ""

    def finding(self) -> Finding:
        """As a line of the doctor's table."""
        shown = [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.numbers.items()
        ]
        said = self.error or ", ".join(shown) or "not here"
        return Finding(self.name, self.verdict, f"{said} ({self.seconds:.1f} s)")

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {**vars(self), "verdict": self.verdict.value, "numbers": dict(self.numbers)}


def examine(lab: Lab, checks: Mapping[str, Callable[[Lab], training.Numbers | None]] = CHECKS) -> Iterator[Part]:
    """Makes all checks; those that would begin behind ``lab.effort.minutes`` are left out, and count as failed."""
    begin = time.monotonic()
    for name, check in checks.items():
        if time.monotonic() - begin > 60 * lab.effort.minutes:
            yield Part(name, Verdict.FAILED, error=f"left out: the {lab.effort.minutes:g} minutes were over")
            continue
        yield _one(lab, name, check)
        free_memory(lab.device)


def _one(lab: Lab, name: str, check: Callable[[Lab], training.Numbers | None]) -> Part:
    begin = time.monotonic()
    try:
        numbers = check(lab)
    except Exception as error:  # whatever an accelerator raises, the next check is made
        trace = "" if isinstance(error, AutoTailorError) else traceback.format_exc()
        said = str(error) if isinstance(error, AutoTailorError) else f"{type(error).__name__}: {error}"
        return Part(name, Verdict.FAILED, time.monotonic() - begin, {}, " ".join(said.split()), trace)
    verdict = Verdict.UNAVAILABLE if numbers is None else Verdict.GOOD
    return Part(name, verdict, time.monotonic() - begin, numbers or {})
