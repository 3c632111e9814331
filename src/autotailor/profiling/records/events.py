"""The runner's protocol: each JSON line of a runner becomes an event, or is refused as the device's fault.

A runner (``runtimes/runner/loop.py``, or the compiled one in ``src/runner``) prints one JSON object on each line, and
libraries print other text between these lines. A device may print anything, so every value is checked here and nowhere
else: `parse` checks a line by itself, and `Asked` checks that its event is about something that the runner was asked to
measure.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.limits import MOST_BLOCKS, MOST_COUNT, MOST_MB, RANGES, Range
from autotailor.profiling.records.machine_state import MachineState
from autotailor.profiling.runtimes.base import Program

BEGINNING = '{"event"'
NANOSECONDS = Range(0.0, 1e15)
MEGABYTES = Range(-MOST_MB, MOST_MB)
KERNELS = Range(0, 10**6, is_whole=True)
BATCHES = Range(0, MOST_COUNT, is_whole=True)
LONGEST_REASON = 300


class StrangeLineError(Exception):
    """A line of the runner makes no sense."""


@dataclass(frozen=True)
class Memory:
    """What a program holds, MiB; None where the runtime cannot tell.

    Attributes:
        weights_mb: the weights of all copies.
        workspace_mb: scratch memory of one run besides outputs.
    """

    weights_mb: float | None = None
    workspace_mb: float | None = None


@dataclass(frozen=True)
class ProgramTimed:
    """A program was timed; each time is the mean of one block of passes, in nanoseconds.

    Attributes:
        batch: number of the program's batch in the manifest.
        key: the program's key.
        passes: how many passes were made.
        long: times of the long run.
        short: times of the short run; empty where a program has one length only.
        steps: times of each step; empty where a program is not run step by step. All steps have as many blocks.
        kernels: how many kernels the runtime has timed in each step, at least one in all steps together.
        memory: what the program holds.
    """

    batch: int
    key: str
    passes: int
    long: tuple[float, ...]
    short: tuple[float, ...] = ()
    steps: tuple[tuple[float, ...], ...] = ()
    kernels: tuple[int, ...] = ()
    memory: Memory = Memory()


@dataclass(frozen=True)
class ProgramWeighed:
    """A part of a program was loaded and weighed, but not timed."""

    batch: int
    key: str
    memory: Memory


@dataclass(frozen=True)
class ProgramFailed:
    """The runtime cannot load or run a program; ``reason`` is one short line."""

    batch: int
    key: str
    reason: str


@dataclass(frozen=True)
class BatchDone:
    """All programs of a batch have been timed.

    Attributes:
        batch: its number in the manifest.
        seconds: how long the batch took, loading included.
        states: how fast and warm the device was before and after, where the runner tells.
    """

    batch: int
    seconds: float
    states: tuple[MachineState, ...] = ()


@dataclass(frozen=True)
class PeakMemory:
    """Peak memory of a process that has loaded and run one network, MiB above what the process held before.

    It is ``VmHWM`` without the pages of files, which hold the code of libraries.

    Attributes:
        loading_mb: peak while the network is loaded; weights may be in memory twice then.
        running_mb: peak while the network runs; ``SuperNet.peak_memory`` predicts it.
    """

    loading_mb: float
    running_mb: float


Event = ProgramTimed | ProgramWeighed | ProgramFailed | BatchDone | PeakMemory


def parse(text: str) -> Event | None:
    """The event of a line; None for the text of libraries, and for lines of the runner that nobody needs.

    Raises:
        StrangeLineError: the line is one of the runner's and makes no sense.
    """
    line = _json(text)
    if line is None or line["event"] not in READERS:
        return None
    return READERS[line["event"]](line)


class Asked:
    """What a runner was asked to measure.

    Args:
        batches: the batches of the manifest, without the helpers.
        helpers: programs that are part of each batch.
    """

    def __init__(self, batches: Sequence[Batch], helpers: Sequence[Program] = ()) -> None:
        self._batches, self._helpers = batches, helpers
        self._programs: dict[int, dict[str, Program]] = {}

    def event(self, text: str) -> Event | None:
        """The event of a line, as `parse` reads it.

        Raises:
            StrangeLineError: the line makes no sense, or is about nothing that was asked for.
        """
        event = parse(text)
        if event is None or isinstance(event, PeakMemory):
            return event
        if event.batch >= len(self._batches):
            raise StrangeLineError(f"batch {event.batch} of {len(self._batches)}")
        if not isinstance(event, BatchDone):
            self._check_key(event)
        return event

    def _check_key(self, event: ProgramTimed | ProgramWeighed | ProgramFailed) -> None:
        programs = self._of_batch(event.batch)
        if isinstance(event, ProgramTimed) and event.key in programs:
            _check_times(event, programs[event.key])
        elif isinstance(event, ProgramTimed) or event.key not in programs.keys() | _step_keys(programs):
            raise StrangeLineError("of nothing that was asked for")

    def _of_batch(self, number: int) -> dict[str, Program]:
        """Programs of a batch by their keys, the parts of each among them; a runner works on one batch at a time."""
        if number not in self._programs:
            whole = (*self._helpers, *self._batches[number].programs)
            self._programs = {number: {program.key: program for each in whole for program in (*each.parts, each)}}
        return self._programs[number]


def _step_keys(programs: Mapping[str, Program]) -> set[str]:
    return {key for program in programs.values() for key, _ in program.steps}


def _check_times(event: ProgramTimed, program: Program) -> None:
    """Raises StrangeLineError where an event lacks times that the program must have."""
    if program.short is not None and not event.short:
        raise StrangeLineError("no short times in nanoseconds")
    if program.steps and len(event.steps) != len(program.steps):
        raise StrangeLineError(f"no times of {len(program.steps)} steps")


def _json(text: str) -> dict[str, Any] | None:
    """The JSON object of one of the runner's lines; None for what a library prints."""
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


def _timed(line: Mapping[str, Any]) -> ProgramTimed:
    if not RANGES["passes"].has(line.get("passes")):
        raise StrangeLineError("no number of passes")
    if not _are_times(line.get("long")):
        raise StrangeLineError("no long times in nanoseconds")
    if (short := line.get("short", [])) != [] and not _are_times(short):
        raise StrangeLineError("no short times in nanoseconds")
    steps, kernels = _steps(line)
    times = tuple(line["long"]), tuple(short)
    return ProgramTimed(_batch(line), _key(line), line["passes"], *times, steps, kernels, _memory(line))


def _steps(line: Mapping[str, Any]) -> tuple[tuple[tuple[float, ...], ...], tuple[int, ...]]:
    """Times of each step, and how many kernels each has: one where the runner does not say."""
    steps = line.get("steps", [])
    if not isinstance(steps, list) or not all(map(_are_times, steps)):
        raise StrangeLineError("no times of steps in nanoseconds")
    if len({len(step) for step in steps}) > 1:
        raise StrangeLineError("steps of several numbers of blocks")
    kernels = line.get("kernels", [1] * len(steps))
    if not isinstance(kernels, list) or len(kernels) != len(steps) or not all(map(KERNELS.has, kernels)):
        raise StrangeLineError(f"no numbers of kernels of {len(steps)} steps")
    if steps and not any(kernels):
        raise StrangeLineError("steps without a kernel")
    return tuple(map(tuple, steps)), tuple(kernels)


def _weighed(line: Mapping[str, Any]) -> ProgramWeighed:
    return ProgramWeighed(_batch(line), _key(line), _memory(line))


def _failed(line: Mapping[str, Any]) -> ProgramFailed:
    """The reason becomes one short line of printable characters."""
    said = str(line.get("reason", ""))[:LONGEST_REASON]
    words = "".join(c if c.isprintable() else " " for c in said).split()
    return ProgramFailed(_batch(line), _key(line), " ".join(words) or "no reason given")


def _done(line: Mapping[str, Any]) -> BatchDone:
    if not RANGES["seconds"].has(line.get("seconds")):
        raise StrangeLineError("no duration")
    states = tuple(MachineState.from_line(line[when]) for when in ("before", "after") if when in line)
    return BatchDone(_batch(line), line["seconds"], states)


def _peak(line: Mapping[str, Any]) -> PeakMemory:
    return PeakMemory(_megabytes(line, "loading_mb"), _megabytes(line, "running_mb"))


READERS: Mapping[str, Callable[[Mapping[str, Any]], Event]] = {
    "program": _timed,
    "weighed": _weighed,
    "failed": _failed,
    "batch": _done,
    "memory": _peak,
}
"""What turns a line into an event, by the name that the line gives itself."""


def _batch(line: Mapping[str, Any]) -> int:
    if not BATCHES.has(line.get("batch")):
        raise StrangeLineError(f"batch {str(line.get('batch'))[:40]}")
    return int(line["batch"])


def _key(line: Mapping[str, Any]) -> str:
    if not isinstance(line.get("key"), str):
        raise StrangeLineError("of nothing that was asked for")
    return str(line["key"])


def _memory(line: Mapping[str, Any]) -> Memory:
    """The memory that a line tells of; a runner leaves out what its runtime cannot tell."""
    return Memory(*(_megabytes(line, name) if name in line else None for name in ("weights_mb", "workspace_mb")))


def _megabytes(line: Mapping[str, Any], name: str) -> float:
    if not MEGABYTES.has(line.get(name)):
        raise StrangeLineError(f"{name} is no number of MiB")
    return float(line[name])


def _are_times(values: object) -> bool:
    return isinstance(values, list) and 1 <= len(values) <= MOST_BLOCKS and all(map(NANOSECONDS.has, values))
