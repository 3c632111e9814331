"""Times programs on the machine that runs this file: ``python -P loop.py BACKEND MANIFEST``.

It needs NumPy and the standard library; the backend, a file of its own (`ncnn/runner.py`, ...), brings a runtime:
``load(program, settings)`` gives a `Loaded` program, ``clear()`` returns what runs have left in pools. What is done is
said in JSON lines, so that a crash costs one batch and a broken connection one line:

    {"event": "load", "batch": 0, "key": "1f0c..."}
    {"event": "program", "batch": 0, "key": "1f0c...", "passes": 320, "short": [ns, ...], "long": [ns, ...]}
    {"event": "batch", "batch": 0, "seconds": 2.1}

All programs of a batch are run in turn, pass by pass, so that drift hits all of them alike; the first, where it is an
anchor, is run between others, too, until it has had its ``anchor_share`` of the time. Passes alternate between the
short and the long run. Each number is the mean of one block of runs, in nanoseconds.

A program with ``steps`` is run at once and step by step in turn; its line has the blocks of each step in ``steps``, and
in ``kernels`` how many timed kernels each step is made of.
Its ``parts`` are programs that are only loaded, run and weighed before:

    {"event": "weighed", "batch": 0, "key": "77ab...", "weights_mb": 0.4, "workspace_mb": 0.1}
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

INTERRUPTED = 0.05
"""Share of the runs that are taken for interrupted: the slowest."""
HARDLY = 1e-9
"""Weight of an interrupted run: a block of nothing else has its mean."""


class Loaded(Protocol):
    """A program, ready to run.

    Attributes:
        lengths: 2 where there is a short run (number 0) and a long one (number 1), else 1.
    """

    lengths: int

    def run(self, which: int) -> int:
        """One run: nanoseconds."""
        ...

    def workspace_mb(self, held_mb: Callable[[], float]) -> float:
        """Scratch memory of one run, MiB; NaN: the runtime cannot tell. ``held_mb``: what the process holds."""
        ...


class Walked(Loaded, Protocol):
    """A program whose runs can tell their operators apart."""

    def walk(self) -> None:
        """One run, step by step."""
        ...

    def walks(self) -> list[list[list[int]]]:
        """Nanoseconds of each kernel of each step of each such run; it is asked once, at the end."""
        ...


class Backend(Protocol):
    """What a backend's file offers."""

    def load(self, program: dict[str, Any], settings: dict[str, Any]) -> Loaded:
        """A program of the manifest, ready to run; `Walked` where the program has steps."""
        ...

    def clear(self) -> None:
        """Gives back what runs have left in pools."""
        ...


class Timed:
    """A program, its times, and its ``memory``: of its weights (of all copies) and of one run, MiB where known."""

    def __init__(self, key: str, program: Loaded, memory: dict[str, float], has_steps: bool) -> None:
        self.key, self.program = key, program
        self.times: list[list[int]] = [[] for _ in range(program.lengths)]
        self.has_steps = has_steps
        self.memory = {name: value for name, value in memory.items() if not math.isnan(value)}


class Heap(ctypes.Structure):
    """What ``mallinfo2`` of glibc 2.33 and later returns."""

    NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]


def heap_mb() -> float:
    """MiB that the C library has handed out to this process; NaN where it does not say."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return math.nan
    ask.restype = Heap
    heap = ask()
    return float(heap.uordblks + heap.hblkhd) / 2**20


def block_means(times: Sequence[float], blocks: int) -> list[float]:
    """Means of some blocks of consecutive runs, without the slowest twentieth of all: those were interrupted.

    The twentieth is exact: of the fastest of these runs a part counts. A core that others use at times has two speeds,
    and what runs longer than they stay sees both in one run. Means of operators add up to that of their network at any
    mixture of the two (within 2 %, because of the twentieth); medians jump, and not together.
    """
    runs = np.array(times, dtype=np.float64)
    slowest_first = np.argsort(-runs, kind="stable")
    weights = np.empty(len(runs))
    weights[slowest_first] = np.clip(np.arange(1, len(runs) + 1) - INTERRUPTED * len(runs), HARDLY, 1)
    parts = np.array_split(np.arange(len(runs)), min(blocks, len(runs)))
    return [float(np.average(runs[part], weights=weights[part])) for part in parts]


def say(**line: Any) -> None:
    """Prints one JSON line at once."""
    print(json.dumps(line), flush=True)


def load_all(backend: Backend, index: int, batch: dict[str, Any], settings: dict[str, Any]) -> list[Timed]:
    """Loads and warms up what can be loaded; says what cannot."""
    ready = []
    for program in batch["programs"]:
        for part in program.get("parts", ()):
            if (timed := load_one(backend, index, part, settings)) is not None:
                say(event="weighed", batch=index, key=part["key"], **timed.memory)
        if (timed := load_one(backend, index, program, settings)) is not None:
            ready.append(timed)
    return ready


def load_one(backend: Backend, index: int, program: dict[str, Any], settings: dict[str, Any]) -> Timed | None:
    """Loads, warms up and weighs one program; says it when it cannot be loaded.

    One with steps is long: a single run warms it up, and its parts are weighed instead of it.
    """
    say(event="load", batch=index, key=program["key"])
    has_steps = bool(program.get("steps"))
    try:
        before = heap_mb()
        loaded = backend.load(program, settings)
        weights_mb = heap_mb() - before
        for _ in range(1 if has_steps else max(1, settings["warmup"])):
            for which in range(loaded.lengths):
                loaded.run(which)
        memory = {} if has_steps else {"weights_mb": weights_mb, "workspace_mb": loaded.workspace_mb(heap_mb)}
        return Timed(program["key"], loaded, memory, has_steps)
    except Exception as error:
        say(event="failed", batch=index, key=program["key"], reason=str(error))
        return None


def measure(backend: Backend, index: int, batch: dict[str, Any], settings: dict[str, Any]) -> None:
    """Measures one batch and prints its lines."""
    begin = time.perf_counter()
    ready = load_all(backend, index, batch, settings)
    evicted = np.ones(int(settings["evict_mb"] * 2**18), dtype=np.float32)
    start, passes = time.perf_counter(), 0
    while ready and (passes < batch["least_passes"] or time.perf_counter() - start < batch["seconds"]):
        for which in (passes % 2, 1 - passes % 2):
            for timed in turns(ready, batch.get("anchor_share", 0.0)):
                if which < timed.program.lengths:
                    visit(timed, which, settings, evicted)
        passes += 1
    for timed in ready:
        blocks = [block_means(times, batch["blocks"]) for times in timed.times]
        line = {"passes": passes, "short": blocks[0] if len(blocks) == 2 else [], "long": blocks[-1], **timed.memory}
        if timed.has_steps:
            walks = timed.program.walks()  # type: ignore[attr-defined]
            line["steps"] = [block_means([*map(sum, runs)], batch["blocks"]) for runs in zip(*walks, strict=True)]
            line["kernels"] = [len(kernels) for kernels in walks[0]]
        say(event="program", batch=index, key=timed.key, **line)
    say(event="batch", batch=index, seconds=time.perf_counter() - begin)


def turns(ready: Sequence[Timed], anchor_share: float) -> Iterator[Timed]:
    """Each program once; the first one again where it has had less than its share of the time."""
    anchor, spent, start = ready[0], 0.0, time.perf_counter()
    for timed in ready:
        begin = time.perf_counter()
        if timed is anchor or spent < anchor_share * (begin - start):
            yield anchor
            spent += time.perf_counter() - begin
        if timed is not anchor:
            yield timed


def visit(timed: Timed, which: int, settings: dict[str, Any], evicted: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    """``runs`` timed runs, then ``walks`` times as many step by step, after some that bring code and buffers back.

    Whole networks run in a row, as they are used: for ``settle_ms`` before the clock counts. Replicas find their
    weights where a network would: between two visits of one layer, all others have passed through the cache, so as much
    memory is read before each run.
    """
    program, runs = timed.program, settings["runs"]
    settled = time.perf_counter() + (settings["settle_ms"] / 1e3 if program.lengths == 1 else 0.0)
    program.run(which)
    while time.perf_counter() < settled:
        program.run(which)
    for _ in range(runs):
        if program.lengths > 1:
            evicted.sum()
        timed.times[which].append(program.run(which))
    for _ in range(settings["walks"] * runs if timed.has_steps else 0):
        program.walk()  # type: ignore[attr-defined]


def status_mb(field: str) -> float:
    """A field of ``/proc/self/status``, MiB."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"/proc/self/status has no {field}")
    return int(found[1]) / 1024


def reset_peak() -> None:
    """Makes the present memory the peak (``man 5 proc``, clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def watch_memory(backend: Backend, program: dict[str, Any], settings: dict[str, Any]) -> None:
    """Prints the peak memory of one network above what the process held before, MiB: loading it, then running it.

    Pages of files are left out: they are the code of libraries, read when it first runs.
    """
    reset_peak()
    before = status_mb("RssAnon")
    loaded = backend.load(program, settings)
    loading = status_mb("VmHWM") - status_mb("RssFile") - before
    reset_peak()
    for _ in range(settings["runs"]):
        loaded.run(0)
    running = status_mb("VmHWM") - status_mb("RssFile") - before
    say(event="memory", key=program["key"], loading_mb=loading, running_mb=running)


def open_backend(path: str) -> Backend:
    """The module in a file; it is not imported by name, because its folder need not be on the path."""
    spec = importlib.util.spec_from_file_location("backend", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module  # type: ignore[return-value]


def main(backend_path: str, path: str) -> None:
    """Measures all batches of a manifest, or the memory of its one network (``memory``)."""
    manifest = json.loads(Path(path).read_text())
    settings = manifest["settings"]
    if settings["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])  # before the runtime starts its threads
    backend = open_backend(backend_path)
    if "memory" in manifest:
        watch_memory(backend, manifest["memory"], settings)
    for index, batch in enumerate(manifest["batches"]):
        measure(backend, index, batch, settings)
        backend.clear()
    say(event="done")
    leave()


def leave() -> None:
    """Ends the process without destructors: a pool that dies before what was made from it would take it down."""
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
