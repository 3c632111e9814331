"""Notes on this computer about what a runner was last asked, so that a later run understands the runner's journal.

A run may end before it has read all that the device has measured for it: the run was killed, or the device was away for
too long while the runner worked on. The next run reads the rest from the journal on the device.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotailor.artifacts import write_text
from autotailor.profiling.runtimes.base import Program


@dataclass(frozen=True)
class Unfinished:
    """A manifest that a runner was started with.

    Attributes:
        journal: path of the runner's journal on the device.
        batches: the programs of each batch, without their networks.
    """

    journal: str
    batches: tuple[tuple[Program, ...], ...]


def note_path(folder: Path, identity: str, fingerprint: str) -> Path:
    """The file of the note about a device (``Transport.identity``) with the settings of a fingerprint."""
    return folder / f"unfinished-{re.sub(r'[^A-Za-z0-9.-]+', '-', identity)}-{fingerprint}.json"


def write_note(path: Path, unfinished: Unfinished) -> None:
    """Writes the note about a device over an earlier one, whole or not at all."""
    batches = [[_to_json(program) for program in batch] for batch in unfinished.batches]
    write_text(path, json.dumps({"journal": unfinished.journal, "batches": batches}))


def read_note(path: Path) -> Unfinished | None:
    """The note about a device; None where there is no note, or none that can be read."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        batches = tuple(tuple(_from_json(program) for program in batch) for batch in said["batches"])
        return Unfinished(said["journal"], batches)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _to_json(program: Program) -> dict[str, Any]:
    """The part of a program that turns the runner's numbers into latencies."""
    values: Sequence[str] = ("key", "long", "short", "copies", "sink", "steps")
    return {name: getattr(program, name) for name in values}


def _from_json(said: Mapping[str, Any]) -> Program:
    first, second = said["copies"]
    steps = tuple((operator, blob) for operator, blob in said["steps"])
    return Program(
        said["key"], None, (), said["long"], said["short"], copies=(first, second), sink=said["sink"], steps=steps
    )
