"""Times programs with ncnn on the machine that runs this file: ``python ncnn_runner.py MANIFEST``.

It stands alone (ncnn, NumPy and the standard library), and says what it does in JSON lines, so that a crash
costs one batch and a broken connection one line:

    {"event": "load", "batch": 0, "key": "1f0c..."}
    {"event": "program", "batch": 0, "key": "1f0c...", "passes": 320, "short": [ns, ...], "long": [ns, ...]}
    {"event": "batch", "batch": 0, "seconds": 2.1}

All programs of a batch are run in turn, pass by pass, so that drift hits all of them alike. Passes alternate
between the short and the long run. Each number is a low quantile of one block of passes, in nanoseconds.

Pools serve only what a run allocates: were networks loaded with them too, they would fill with the buffers that
weights were transformed in, and every allocation would search through those (5 us instead of 0.1).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

QUANTILE = 0.25


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


class Loaded:
    """A program, ready to run.

    Attributes:
        weights_mb: what loading it has taken, MiB: its weights as ncnn holds them, of all copies.
    """

    def __init__(self, program: dict[str, Any], settings: dict[str, Any], pools: tuple[Any, Any]) -> None:
        self.key = program["key"]
        self.outputs = [program["short"], program["long"]] if program["short"] else [program["long"]]
        self.times: list[list[int]] = [[] for _ in self.outputs]
        self.net = ncnn.Net()
        configure(self.net, settings)
        self.pools = pools
        self.workspace = math.nan
        before = heap_mb()
        text = program["param"] or Path(program["param_path"]).read_text()
        weights = program["bin_path"] or ncnn.DataReaderFromEmpty()
        if self.net.load_param_mem(text) != 0 or self.net.load_model(weights) != 0:
            raise RuntimeError("ncnn cannot load it")
        self.weights_mb = heap_mb() - before
        rng = np.random.default_rng(0)
        self.inputs = [to_mat(rng.random(shape, dtype=np.float32)) for shape in program["inputs"]]

    def workspace_mb(self) -> float:
        """Scratch memory of one run, MiB: what a pool of its own holds afterwards."""
        shared, own = self.pools, ncnn.PoolAllocator()
        self.pools = (shared[0], own)
        self.run(0)
        self.pools = shared
        held = heap_mb()
        own.clear()
        return held - heap_mb()

    def run(self, which: int) -> int:
        """One run: nanoseconds."""
        extractor = self.net.create_extractor()
        extractor.set_blob_allocator(self.pools[0])
        extractor.set_workspace_allocator(self.pools[1])
        for i, mat in enumerate(self.inputs):
            extractor.input(f"in{i}", mat)
        output = self.outputs[which]
        start = time.perf_counter_ns()
        code, result = extractor.extract(output)
        elapsed = time.perf_counter_ns() - start
        if code != 0 or result.empty():
            raise RuntimeError(f"ncnn cannot compute blob {output}")
        return elapsed


def to_mat(array: np.ndarray[Any, np.dtype[np.float32]]) -> Any:
    """A Mat with memory of its own (the array must live until the copy is made)."""
    return ncnn.Mat(array).clone()


def configure(net: Any, settings: dict[str, Any]) -> None:
    """Options that a network is loaded with."""
    option = net.opt
    for name, value in settings["options"].items():
        setattr(option, name, value)
    option.num_threads = settings["threads"]
    net.opt = option


def low_quantiles(times: list[int], blocks: int) -> list[float]:
    """The low quantile of each of some blocks of consecutive passes."""
    parts = np.array_split(np.array(times, dtype=np.float64), min(blocks, len(times)))
    return [float(np.quantile(part, QUANTILE)) for part in parts]


def say(**line: Any) -> None:
    """Prints one JSON line at once."""
    print(json.dumps(line), flush=True)


def load_all(index: int, batch: dict[str, Any], settings: dict[str, Any], pools: tuple[Any, Any]) -> list[Loaded]:
    """Loads and warms up what can be loaded; says what cannot."""
    loaded = []
    for program in batch["programs"]:
        say(event="load", batch=index, key=program["key"])
        try:
            ready = Loaded(program, settings, pools)
            for _ in range(max(1, settings["warmup"])):
                for which in range(len(ready.outputs)):
                    ready.run(which)
            ready.workspace = ready.workspace_mb()
            loaded.append(ready)
        except Exception as error:
            say(event="failed", batch=index, key=program["key"], reason=str(error))
    return loaded


def measure(index: int, batch: dict[str, Any], settings: dict[str, Any], pools: tuple[Any, Any]) -> None:
    """Measures one batch and prints its lines."""
    begin = time.perf_counter()
    loaded = load_all(index, batch, settings, pools)
    evicted = np.ones(int(settings["evict_mb"] * 2**18), dtype=np.float32)
    start, passes = time.perf_counter(), 0
    while loaded and (passes < batch["least_passes"] or time.perf_counter() - start < batch["seconds"]):
        for which in (passes % 2, 1 - passes % 2):
            for program in loaded:
                if which < len(program.outputs):
                    program.times[which] += timed(program, which, settings["runs"], evicted)
        passes += 1
    for program in loaded:
        blocks = [low_quantiles(times, batch["blocks"]) for times in program.times]
        short = blocks[0] if len(blocks) == 2 else []
        memory = {"weights_mb": program.weights_mb, "workspace_mb": program.workspace}
        known = {name: value for name, value in memory.items() if not math.isnan(value)}
        say(event="program", batch=index, key=program.key, passes=passes, short=short, long=blocks[-1], **known)
    say(event="batch", batch=index, seconds=time.perf_counter() - begin)


def timed(program: Loaded, which: int, runs: int, evicted: np.ndarray[Any, np.dtype[np.float32]]) -> list[int]:
    """Some timed runs, after one that brings code and buffers back into the caches.

    Whole networks run in a row, as they are used. Replicas find their weights where a network would: between two
    visits of one layer, all others have passed through the cache, so as much memory is read before each run.
    """
    program.run(which)
    times = []
    for _ in range(runs):
        if len(program.outputs) > 1:
            evicted.sum()
        times.append(program.run(which))
    return times


def status_mb(field: str) -> float:
    """A field of ``/proc/self/status``, MiB."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"/proc/self/status has no {field}")
    return int(found[1]) / 1024


def reset_peak() -> None:
    """Makes the present memory the peak (``man 5 proc``, clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def watch_memory(program: dict[str, Any], settings: dict[str, Any], pools: tuple[Any, Any]) -> None:
    """Prints the peak memory of one network above what the process held before, MiB: loading it, then running it.

    Pages of files are left out: they are the code of libraries, read when it first runs.
    """
    reset_peak()
    before = status_mb("RssAnon")
    loaded = Loaded(program, settings, pools)
    loading = status_mb("VmHWM") - status_mb("RssFile") - before
    reset_peak()
    for _ in range(settings["runs"]):
        loaded.run(0)
    say(
        event="memory",
        key=loaded.key,
        loading_mb=loading,
        running_mb=status_mb("VmHWM") - status_mb("RssFile") - before,
    )


def main(path: str) -> None:
    """Measures all batches of a manifest, or the memory of its one network (``memory``)."""
    manifest = json.loads(Path(path).read_text())
    settings = manifest["settings"]
    if settings["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])  # before ncnn starts its threads
    pools = (ncnn.PoolAllocator(), ncnn.PoolAllocator())
    if "memory" in manifest:
        watch_memory(manifest["memory"], settings, pools)
    for index, batch in enumerate(manifest["batches"]):
        measure(index, batch, settings, pools)
        for pool in pools:
            pool.clear()
    say(event="done")
    leave()


def leave() -> None:
    """Ends the process without destructors: a pool that dies before a Mat made from it would take it down."""
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
