"""The ncnn backend of ``runner/loop.py``: loads and runs programs whose text is a ``.param``.

This file needs ncnn, NumPy and the standard library only. Memory pools serve only the allocations of runs. If networks
were loaded with the pools, too, the pools would fill with buffers from transforming weights, and every allocation would
search through these (5 us instead of 0.1). Each program has its own pools, as a network in use has: a pool hands out
the buffer that was freed first, and this must not be another network's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

POOLS: list[tuple[Any, Any]] = []
"""Allocators of blobs and of scratch memory, one pair for each program. They must outlive the memory they gave out."""


def clear() -> None:
    """Empties the pools of programs that are no longer used."""
    for pair in POOLS:
        for pool in pair:
            pool.clear()
    POOLS.clear()


class LoadedProgram:
    """A program that is ready to run (``Loaded`` of the loop)."""

    def __init__(self, program: dict[str, Any], settings: dict[str, Any]) -> None:
        self.outputs = [program["short"], program["long"]] if program["short"] else [program["long"]]
        self.lengths = len(self.outputs)
        self.net = ncnn.Net()
        configure(self.net, settings)
        self.pools = ncnn.PoolAllocator(), ncnn.PoolAllocator()
        POOLS.append(self.pools)
        text = program["param"] or Path(program["param_path"]).read_text()
        weights = program["bin_path"] or ncnn.DataReaderFromEmpty()
        if self.net.load_param_mem(text) != 0 or self.net.load_model(weights) != 0:
            raise RuntimeError("ncnn cannot load it")
        self.shapes = program["inputs"]
        numbers = {blob.name: i for i, blob in enumerate(self.net.blobs())}
        self.steps = [numbers[name] for name in program.get("steps", ())]
        self.walked: list[list[int]] = []

    @cached_property
    def inputs(self) -> list[Any]:
        """The inputs, made when they are first needed, so that they do not count as memory of loading."""
        rng = np.random.default_rng(0)
        return [to_mat(rng.random(shape, dtype=np.float32)) for shape in self.shapes]

    def workspace_mb(self, held_mb: Callable[[], float]) -> float:
        """Scratch memory of one run in MiB: the run gets a new pool, which holds that memory afterwards."""
        shared, own = self.pools, ncnn.PoolAllocator()
        self.pools = (shared[0], own)
        self.run(0)
        self.pools = shared
        held = held_mb()
        own.clear()
        return held - held_mb()

    def extractor(self) -> Any:
        """An extractor with its inputs."""
        extractor = self.net.create_extractor()
        extractor.set_blob_allocator(self.pools[0])
        extractor.set_workspace_allocator(self.pools[1])
        for i, mat in enumerate(self.inputs):
            extractor.input(f"in{i}", mat)
        return extractor

    def walk(self) -> None:
        """Runs once, operator by operator. Each blob stays in its packed layout (the 1 of ``extract``)."""
        extractor, clock, times = self.extractor(), time.perf_counter_ns, []
        extract = extractor.extract
        for blob in self.steps:
            start = clock()
            extract(blob, 1)
            times.append(clock() - start)
        self.walked.append(times)

    def walks(self) -> list[list[list[int]]]:
        """Nanoseconds of each step of each run step by step; a step counts as one kernel."""
        return [[[time] for time in times] for times in self.walked]

    def run(self, which: int) -> int:
        """Runs once; returns nanoseconds."""
        extractor, output = self.extractor(), self.outputs[which]
        start = time.perf_counter_ns()
        code, result = extractor.extract(output)
        elapsed = time.perf_counter_ns() - start
        if code != 0 or result.empty():
            raise RuntimeError(f"ncnn cannot compute blob {output}")
        return elapsed


load = LoadedProgram


def to_mat(array: np.ndarray[Any, np.dtype[np.float32]]) -> Any:
    """A Mat that holds a copy of the array (which must live until the copy is made)."""
    return ncnn.Mat(array).clone()


def configure(net: Any, settings: dict[str, Any]) -> None:
    """Sets a network's options, before it is loaded."""
    option = net.opt
    for name, value in settings["options"].items():
        setattr(option, name, value)
    option.num_threads = settings["threads"]
    net.opt = option
