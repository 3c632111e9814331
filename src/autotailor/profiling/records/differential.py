"""Computes an operator's latency from the runner's times as a difference of two runs, and averages over repetitions.

Replicas: latency = (T(R2) - T(R1)) / (R2 - R1) - sink.
In place: latency = T(step) - kernels of the step x cost of timing a kernel. That cost follows from the time by which
all steps of a batch's networks together take longer than the same networks run at once.

Disturbances that slow a whole walk down are removed by comparing its steps (`steady`); drift is removed by the anchor
operator of the same batch (`estimates`). The rest is averaged, not taken the median of: a core that others use at times
has two speeds, and only means of operators add up to the mean of their network then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.profiling.records.events import ProgramTimed
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program

NS_PER_MS = 1e6
TRIMMED = 0.1
"""Share of the blocks that a mean leaves out at each end; it leaves out none of fewer than ten blocks."""


@dataclass(frozen=True)
class Estimate:
    """A latency and its standard error, in milliseconds, from ``repeats`` passes."""

    latency_ms: float
    standard_error: float
    repeats: int

    @property
    def relative_error(self) -> float:
        """Standard error over latency."""
        return self.standard_error / self.latency_ms if self.latency_ms > 0 else float("inf")


def block_latencies(program: Program, short: Sequence[float], long: Sequence[float]) -> npt.NDArray[np.float64]:
    """Latencies in milliseconds of one replica, or of a whole network, one for each block."""
    if program.short is None:
        return np.asarray(long, dtype=np.float64) / NS_PER_MS
    count = min(len(short), len(long))
    difference = np.asarray(long[:count]) - np.asarray(short[:count])
    return np.asarray(difference / (program.copies[1] - program.copies[0]) / NS_PER_MS, dtype=np.float64)


def steady(steps: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    """Times of steps as if every block had been equally slow: as slow as the blocks are on average.

    The slowness of a block is the median, over the steps, of a step's time relative to the step's usual time. A step
    that does not slow down like the others comes out a little wrong: by 3.5 % at most, where three blocks of ten are
    slower by half and this step is not. Steps too short for the clock do not count.

    Args:
        steps: nanoseconds ``[steps, blocks]``.
    """
    times = np.asarray(steps, dtype=np.float64)
    usual = np.median(times, axis=1)
    seen = usual > 0
    if not seen.any():
        return times
    slowness = np.median(times[seen] / usual[seen, None], axis=0)
    return np.asarray(times * slowness.mean() / slowness)


@dataclass(frozen=True)
class Walk:
    """The times of a network that was run step by step.

    Attributes:
        steps: nanoseconds ``[steps, blocks]``.
        kernels: how many kernels the runtime has timed in each step ``[steps]``.
        at_once: nanoseconds of the whole network, run at once ``[blocks]``.
    """

    steps: npt.NDArray[np.float64]
    kernels: npt.NDArray[np.int64]
    at_once: npt.NDArray[np.float64]

    @classmethod
    def of(cls, event: ProgramTimed) -> Walk:
        """The times of a program with steps; slow blocks are made steady."""
        return cls(steady(event.steps), np.asarray(event.kernels), np.asarray(event.long, dtype=np.float64))


def kernel_overhead(walks: Iterable[Walk], harness_ms: float) -> float:
    """The cost of timing a kernel, in milliseconds: the median over the networks of a batch.

    All steps of a network together take longer than the network at once; the kernels of the network share the
    difference equally. One network shows the cost with an error of tens of microseconds, as much as a small operator
    takes, and the costs in different networks differ by no more than that.

    Args:
        walks: the walks of the networks of a batch.
        harness_ms: the cost of calling the runtime, in milliseconds.
    """
    costs = []
    for walk in walks:
        walked = walk.steps.mean(axis=1).sum()
        costs.append(((walked - walk.at_once.mean()) / NS_PER_MS + harness_ms) / walk.kernels.sum())
    return float(np.median(costs)) if costs else 0.0


def step_latencies(program: Program, walk: Walk, overhead_ms: float) -> dict[str, npt.NDArray[np.float64]]:
    """Latencies in milliseconds of the operators of a network that was run step by step, one for each block.

    The latency of an operator that is several steps is the mean of these steps.

    Args:
        program: the network, with its ``steps``.
        walk: the times of the network.
        overhead_ms: the cost of timing a kernel, in milliseconds.
    """
    operators = walk.steps / NS_PER_MS - overhead_ms * walk.kernels[:, None]
    places: dict[str, list[npt.NDArray[np.float64]]] = {}
    for (key, _), blocks in zip(program.steps, operators, strict=True):
        places.setdefault(key, []).append(blocks)
    return {key: np.mean(blocks, axis=0) for key, blocks in places.items()}


def robust(blocks: npt.ArrayLike, repeats: int) -> Estimate:
    """Mean of latencies without a tenth at each end, and its standard error (infinite for a single block).

    A median, or a mean of fewer blocks, would be worse where a core is slow for about half of the time: it would jump
    from one speed of the core to the other, and further in one network than in another (``benchmarks/repetition.py``).
    """
    from scipy.stats import trim_mean
    from scipy.stats.mstats import trimmed_stde

    values = np.asarray(blocks, dtype=np.float64)
    trimmed = (int(TRIMMED * len(values)) + 1e-6) / len(values)  # the share left out; SciPy computes with it
    error = float(trimmed_stde(values, (trimmed, trimmed))) if len(values) > 1 else float("inf")
    return Estimate(float(trim_mean(values, TRIMMED)), error, repeats)


def estimates(records: Iterable[Record], anchor: str) -> dict[str, Estimate]:
    """Program key to its latency, corrected for drift: each batch is scaled so that the anchor has its mean latency."""
    records = list(records)
    anchors = [record.anchor_ms for record in records if record.key == anchor]
    reference = float(np.mean(anchors)) if anchors else 1.0
    blocks: dict[str, list[float]] = {}
    passes: dict[str, int] = {}
    for record in records:
        blocks.setdefault(record.key, []).extend(b * reference / record.anchor_ms for b in record.blocks)
        passes[record.key] = passes.get(record.key, 0) + record.passes
    return {key: robust(values, passes[key]) for key, values in blocks.items()}
