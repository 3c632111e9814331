"""What the runner on a device prints, held against what it was asked: a device may say anything.

Between the runner's JSON lines stands what libraries print. A line of the runner that makes no sense, and a program
that nothing sensible is said of, are the device's fault: they are noted, and what they are about is measured again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotailor.profiling.records.limits import MOST_BLOCKS, MOST_COUNT, MOST_MB, RANGES, Range
from autotailor.profiling.runtimes.base import Program

BEGINNING = '{"event"'
NANOSECONDS = Range(0.0, 1e15)
MEGABYTES = Range(-MOST_MB, MOST_MB)
KERNELS = Range(0, 10**6, is_whole=True)
BATCHES = Range(0, MOST_COUNT, is_whole=True)
LONGEST_REASON = 300


class StrangeLineError(Exception):
    """A line of the runner makes no sense."""


@dataclass
class Lines:
    """What the runner has printed so far of some batches.

    Attributes:
        programs: batch to its programs' lines, by key.
        weighed: operator id to its memory.
        failures: program key to the reason why the runtime cannot run it.
        finished: how many batches are done.
        strange: how many lines made no sense.
        first_strange: the first of them, with the reason.
        again: batch to its programs that nothing sensible was said of, with the reason.
    """

    programs: dict[int, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    weighed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    finished: int = 0
    strange: int = 0
    first_strange: str = ""
    again: dict[int, tuple[tuple[Program, ...], str]] = field(default_factory=dict)

    def note(self, text: str, reason: object) -> None:
        """Counts a line that makes no sense."""
        self.strange += 1
        self.first_strange = self.first_strange or f"{reason}: {text[:100]!r}"


def parse(text: str) -> dict[str, Any] | None:
    """One of the runner's lines; None: what a library prints between them.

    Raises:
        StrangeLineError: a line of the runner that is no JSON.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith(BEGINNING):
            raise StrangeLineError("no JSON") from error
        return None
    if not isinstance(line, dict) or not isinstance(line.get("event"), str):
        return None
    return line


def check_batch(line: Mapping[str, Any], batches: int) -> None:
    """Raises StrangeLineError where a line is of no batch of the manifest."""
    if not BATCHES.has(number := line.get("batch", 0)) or number >= batches:
        raise StrangeLineError(f"batch {str(number)[:40]} of {batches}")


def check_end(line: Mapping[str, Any]) -> None:
    """Raises StrangeLineError where the line about a batch's end does not say how long it took."""
    if not RANGES["seconds"].has(line.get("seconds")):
        raise StrangeLineError("no duration")


def check_memory(line: Mapping[str, Any], names: Iterable[str] = ("weights_mb", "workspace_mb")) -> None:
    """Raises StrangeLineError where memory that a line tells of is no number of MiB."""
    for name in names:
        if name in line and not MEGABYTES.has(line[name]):
            raise StrangeLineError(f"{name} is no number of MiB")


def check_program(line: Mapping[str, Any], program: Program) -> None:
    """Raises StrangeLineError where a line does not hold what it should say of a program."""
    if not RANGES["passes"].has(line.get("passes")):
        raise StrangeLineError("no number of passes")
    _check_times(line, "long")
    if program.short is not None:
        _check_times(line, "short")
    check_memory(line)
    if program.steps:
        _check_steps(line, len(program.steps))


def _check_steps(line: Mapping[str, Any], count: int) -> None:
    """Times of each step, as many blocks of each; and its number of kernels, where that is told."""
    steps, kernels = line.get("steps"), line.get("kernels", [1] * count)
    if not isinstance(steps, list) or len(steps) != count or not all(_are(NANOSECONDS, step) for step in steps):
        raise StrangeLineError(f"no times of {count} steps")
    if len({len(step) for step in steps}) > 1:
        raise StrangeLineError("steps of several numbers of blocks")
    if not isinstance(kernels, list) or len(kernels) != count or not all(map(KERNELS.has, kernels)) or not any(kernels):
        raise StrangeLineError(f"no numbers of kernels of {count} steps")


def _check_times(line: Mapping[str, Any], name: str) -> None:
    if not _are(NANOSECONDS, line.get(name)):
        raise StrangeLineError(f"no {name} times in nanoseconds")


def _are(numbers: Range, values: object) -> bool:
    return isinstance(values, list) and 1 <= len(values) <= MOST_BLOCKS and all(map(numbers.has, values))


def reason_of(line: Mapping[str, Any]) -> str:
    """Why a program failed, as the runner says it, in one short line."""
    words = "".join(c if c.isprintable() else " " for c in str(line.get("reason", "no reason given"))[:LONGEST_REASON])
    return " ".join(words.split()) or "no reason given"


def by_key(programs: Sequence[Program]) -> dict[str, Program]:
    """Programs by their keys, the parts of each among them."""
    return {program.key: program for whole in programs for program in (*whole.parts, whole)}
