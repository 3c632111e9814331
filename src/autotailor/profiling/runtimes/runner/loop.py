"""Times programs on the machine that runs this file: ``python -P loop.py BACKEND MANIFEST``.

This file needs NumPy and the standard library only. The backend is another file (``ncnn/runner.py``, ...) that brings a
runtime: ``load(program, settings)`` returns a ``Loaded`` program, and ``clear()`` frees memory that runs have left in
pools. The loop reports progress in JSON lines, so that a crash costs one batch and a broken connection one line:

    {"event": "load", "batch": 0, "key": "1f0c..."}
    {"event": "program", "batch": 0, "key": "1f0c...", "passes": 320, "short": [ns, ...], "long": [ns, ...]}
    {"event": "batch", "batch": 0, "seconds": 2.1}

Each pass runs all programs of a batch in turn, so that drift hits all of them alike, and in a random order: a scheduler
that shares the core takes it away after equal times, and with a fixed order it would interrupt the same programs in
every pass. The first program, if it is an anchor, also runs between the others, until it has had ``anchor_share`` of
the pass's time. Passes alternate between the short and the long run. Each number is the mean of one block of runs, in
nanoseconds.

A program with ``steps`` is run as a whole and step by step in turn. Its line has the blocks of each step in ``steps``,
and the number of timed kernels of each step in ``kernels``. Its ``parts`` are programs that are loaded, run and weighed
before, but not timed:

    {"event": "weighed", "batch": 0, "key": "77ab...", "weights_mb": 0.4, "workspace_mb": 0.1}
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import math
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

INTERRUPTED = 0.05
"""Share of the runs, the slowest ones, that count as interrupted."""
SETTLE_RUNS = 4
"""Untimed runs of a whole network before its timed runs, where these do not take too long."""
SETTLE_FACTOR = 10
"""Settling takes this many times ``settle_ms`` at most, and one run at least."""
HARDLY = 1e-9
"""Weight of an interrupted run. It is not 0, so that a block of interrupted runs still has a mean."""


class Loaded(Protocol):
    """A program, ready to run.

    Attributes:
        lengths: 2 where there is a short run (number 0) and a long one (number 1), else 1.
    """

    lengths: int

    def run(self, which: int) -> int:
        """Runs once; returns nanoseconds."""
        ...

    def workspace_mb(self, held_mb: Callable[[], float]) -> float:
        """Scratch memory of one run in MiB; NaN where the runtime cannot tell.

        ``held_mb`` returns the memory that the process holds at the moment.
        """
        ...


class Walked(Loaded, Protocol):
    """A program whose runs can tell their operators apart."""

    def walk(self) -> None:
        """Runs once, step by step."""
        ...

    def walks(self) -> list[list[list[int]]]:
        """Nanoseconds of each kernel of each step of each run step by step; called once, after all runs."""
        ...


class Backend(Protocol):
    """What a backend's file offers."""

    def load(self, program: dict[str, Any], settings: dict[str, Any]) -> Loaded:
        """Makes a program of the manifest ready to run; returns a ``Walked`` if the program has steps."""
        ...

    def clear(self) -> None:
        """Frees memory that runs have left in pools."""
        ...


class Timed:
    """A program with its times in nanoseconds, and its memory in MiB.

    ``memory`` holds the weights of all copies, and the workspace of one run, as far as they are known.
    """

    def __init__(self, key: str, program: Loaded, memory: dict[str, float], has_steps: bool) -> None:
        self.key, self.program = key, program
        self.times: list[list[int]] = [[] for _ in range(program.lengths)]
        self.has_steps = has_steps
        self.memory = {name: value for name, value in memory.items() if not math.isnan(value)}


class Heap(ctypes.Structure):
    """The structure that ``mallinfo2`` of glibc 2.33 and later returns."""

    NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]


def heap_mb() -> float:
    """MiB that the C library has handed out to this process; NaN where the library does not tell."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return math.nan
    ask.restype = Heap
    heap = ask()
    return float(heap.uordblks + heap.hblkhd) / 2**20


def block_means(times: Sequence[float], blocks: int) -> list[float]:
    """Means of blocks of consecutive runs, without the slowest twentieth of all runs, which were interrupted.

    Exactly a twentieth is left out: the fastest of the slow runs counts in part. A core that other processes use at
    times has two speeds, and a long run sees both. Means of operators add up to the mean of their network at any
    mixture of the two speeds (within 2 %, because of the twentieth). Medians do not, because each operator's median
    jumps from one speed to the other at a mixture of its own.
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
    """Loads and warms up the programs of a batch; reports those that cannot be loaded."""
    ready = []
    for program in batch["programs"]:
        for part in program.get("parts", ()):
            if (timed := load_one(backend, index, part, settings)) is not None:
                say(event="weighed", batch=index, key=part["key"], **timed.memory)
        if (timed := load_one(backend, index, program, settings)) is not None:
            ready.append(timed)
    return ready


def load_one(backend: Backend, index: int, program: dict[str, Any], settings: dict[str, Any]) -> Timed | None:
    """Loads, warms up and weighs one program; reports a program that cannot be loaded and returns None.

    A program with steps takes long, so that a single run warms it up, and its parts are weighed instead of it.
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
    start, passes, chance = time.perf_counter(), 0, random.Random(0)
    while ready and (passes < batch["least_passes"] or time.perf_counter() - start < batch["seconds"]):
        for which in (passes % 2, 1 - passes % 2):
            for timed in turns(ready, batch.get("anchor_share", 0.0), chance):
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


def turns(ready: Sequence[Timed], anchor_share: float, chance: random.Random) -> Iterator[Timed]:
    """Yields each program once, in a random order, and the first one again when it has had too little of the time."""
    anchor, spent, start = ready[0], 0.0, time.perf_counter()
    for timed in chance.sample(ready, len(ready)):
        begin = time.perf_counter()
        if timed is anchor or spent < anchor_share * (begin - start):
            yield anchor
            spent += time.perf_counter() - begin
        if timed is not anchor:
            yield timed


def visit(timed: Timed, which: int, settings: dict[str, Any], evicted: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    """Times one program: ``runs`` timed runs, then ``walks`` times as many runs step by step.

    Untimed runs come first, to bring code and buffers back into the caches. A whole network is used in runs in a row,
    and therefore settles for ``settle_ms``. Replicas must find their weights where a network's layer finds them:
    between two uses of a layer, all other layers have passed through the cache. So memory is read before each run of
    replicas.
    """
    program, runs = timed.program, settings["runs"]
    settle(program, which, settings["settle_ms"] / 1e3 if program.lengths == 1 else 0.0)
    for _ in range(runs):
        if program.lengths > 1:
            evicted.sum()
        timed.times[which].append(program.run(which))
    for _ in range(settings["walks"] * runs if timed.has_steps else 0):
        program.walk()  # type: ignore[attr-defined]


def settle(program: Loaded, which: int, seconds: float) -> None:
    """Runs a program once, then until both ``seconds`` and ``SETTLE_RUNS`` are over.

    The second run after other work is slower than the fifth, in a network of 2 ms as in one of 0.2 ms. Time alone
    would let the shorter network settle better, and the anchor worse than the networks that it scales.
    """
    begin, spent, runs = time.perf_counter(), 0.0, 0
    while runs == 0 or spent < seconds or (runs < SETTLE_RUNS and spent < SETTLE_FACTOR * seconds):
        program.run(which)
        runs, spent = runs + 1, time.perf_counter() - begin


def status_mb(field: str) -> float:
    """A field of ``/proc/self/status`` in MiB."""
    match = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if match is None:
        raise RuntimeError(f"/proc/self/status has no {field}")
    return int(match[1]) / 1024


def reset_peak() -> None:
    """Resets the process's peak memory to its present memory (``man 5 proc``, clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def watch_memory(backend: Backend, program: dict[str, Any], settings: dict[str, Any]) -> None:
    """Prints the peak memory in MiB of loading one network, and of running it, above what the process held before.

    Pages of files do not count, because they hold the code of libraries, which is read when it first runs.
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
    """Imports a module by its file, because the file's folder need not be on Python's path."""
    spec = importlib.util.spec_from_file_location("backend", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module  # type: ignore[return-value]


def main(backend_path: str, path: str) -> None:
    """Measures all batches of a manifest, or the memory of the one network under its key ``memory``."""
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
    """Ends the process without destructors: a memory pool freed before its users would crash the process."""
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
