"""Exits of members in ``pool.txt``: where a member can answer before its end, and when such an answer counts.

Example (the line ``confidence`` stands once, behind ``norms``; the other lines follow the line of their member)::

    confidence probability logits
    exit stage2 accuracy 88.4 latency_ms 0.31 output out0
    exit stage3 accuracy 91.2 latency_ms 0.52 output out1
    thresholds guaranteed 0.93 -

A pool without such lines has no exits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from autotailor.serving.files import words

LAST = "last"
"""What a member's own answer is called among its exits."""
ANSWERS = "answers.npz"
"""What the rule ``exits`` knows of an export: what its exits answer to validation and test pictures."""
KINDS, OUTPUTS = ("probability", "margin"), ("logits", "probabilities")
MOST_EXITS = 16
Thresholds = tuple[str, tuple[float | None, ...]]
"""A name, and for each exit the confidence from which a picture leaves; None where none leaves."""
Parsed = tuple[tuple["Exit", ...], tuple[Thresholds, ...]]


@dataclass(frozen=True)
class Confidence:
    """How sure answers are.

    Attributes:
        kind: the largest probability, or its margin to the second one, by a name of ``KINDS``.
        outputs: what a member's own answer holds, by a name of ``OUTPUTS``; exits answer with logits.
    """

    kind: str
    outputs: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.outputs not in OUTPUTS:
            raise ValueError(f"confidence of {self.kind} {self.outputs}, expected one of {KINDS} and one of {OUTPUTS}")

    def line(self) -> str:
        """The line of the file."""
        return f"confidence {self.kind} {self.outputs}"


@dataclass(frozen=True)
class Exit:
    """A place where a member can answer before its end.

    Attributes:
        name: of the stage or block that it follows.
        accuracy: percent.
        latency_ms: from the input to its answer, with the exits before it, without load.
        output: its blob.
    """

    name: str
    accuracy: float
    latency_ms: float
    output: str

    def line(self) -> str:
        """The line of the file."""
        return f"exit {self.name} accuracy {self.accuracy!r} latency_ms {self.latency_ms!r} output {self.output}"


_EXIT = re.compile(r"exit (\S+) accuracy (\S+) latency_ms (\S+) output (\S+)")


def lines_of(exits: Sequence[Exit], thresholds: Sequence[Thresholds]) -> list[str]:
    """The lines behind that of a member."""
    rows = (" ".join("-" if each is None else repr(each) for each in row) for _, row in thresholds)
    return [each.line() for each in exits] + [
        f"thresholds {name} {row}" for (name, _), row in zip(thresholds, rows, strict=True)
    ]


def parse_exits(lines: Sequence[str], output: str, latency_ms: float) -> Parsed:
    """What the lines behind that of a member say.

    Args:
        lines: those behind the member's line.
        output: blob of the member's own answer.
        latency_ms: of the member.

    Raises:
        ValueError: a line is none of exits, or does not fit the others.
    """
    count = next((place for place, line in enumerate(lines) if not line.startswith("exit ")), len(lines))
    exits = tuple(_exit(line) for line in lines[:count])
    thresholds = tuple(_thresholds(line, len(exits)) for line in lines[count:])
    blobs, names = [*(each.output for each in exits), output], [*(each.name for each in exits), LAST]
    reached = [0.0, *(each.latency_ms for each in exits), latency_ms]
    for what, listed in (("exits", names), ("blobs", blobs), ("thresholds", [name for name, _ in thresholds])):
        if len(set(listed)) < len(listed):
            raise ValueError(f"two {what} of a member have the same name: {', '.join(listed)}")
    if sorted(reached) != reached or (exits and not exits[0].latency_ms > 0):
        raise ValueError(f"latencies {reached[1:]} of exits and their member are not positive and rising")
    if len(exits) > MOST_EXITS:
        raise ValueError(f"{len(exits)} exits, expected at most {MOST_EXITS}")
    return exits, thresholds


def _exit(line: str) -> Exit:
    match = _EXIT.fullmatch(line)
    if match is None:
        raise ValueError(f"{line[:80]!r} is no line of an exit")
    return Exit(words.name(match[1]), words.number(match[2]), words.number(match[3]), match[4])


def _thresholds(line: str, exits: int) -> Thresholds:
    key, *line_words = line.split(" ")
    if key != "thresholds" or not exits or len(line_words) != exits + 1:
        raise ValueError(f"{line[:80]!r} is no line of thresholds of {exits} exits")
    values = tuple(None if word == "-" else words.number(word) for word in line_words[1:])
    if any(value is not None and value < 0 for value in values):
        raise ValueError(f"{line[:80]!r} has a threshold below 0")
    return line_words[0], values
