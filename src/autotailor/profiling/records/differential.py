"""From the runner's numbers to latencies and their standard errors, one estimate for each block of passes.

Replicas: latency = (T(R2) - T(R1)) / (R2 - R1) - sink. In place: latency = T(step) minus what timing its kernels costs,
which is what all steps of a batch's networks take longer than these networks at once. What makes a whole walk slow is
taken out by its steps, drift by the anchor operator of the same batch. What is left is averaged: only means of
operators add up to that of their network, where a core has two speeds because others use it at times.
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
"""Share of the blocks that is left out at each end, where there are ten and more."""


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
    """Latencies in milliseconds, one for each block: of one replica, or of a whole network."""
    if program.short is None:
        return np.asarray(long, dtype=np.float64) / NS_PER_MS
    count = min(len(short), len(long))
    difference = np.asarray(long[:count]) - np.asarray(short[:count])
    return np.asarray(difference / (program.copies[1] - program.copies[0]) / NS_PER_MS, dtype=np.float64)


def steady(steps: Sequence[Sequence[float]]) -> npt.NDArray[np.float64]:
    """Times of steps as if what makes all of them slow at once had been the same, its mean, in every block.

    The slowness of a block is the median over the steps of their time over their usual one. A step that does not slow
    down as the others comes out a little off: by 3.5 % at most, where three blocks of ten are slow by half and it alone
    is not. Steps that the clock does not see do not count.

    Args:
        steps: nanoseconds for each step and block.
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
    """What a batch has shown of a network in place.

    Attributes:
        steps: nanoseconds of each step and block.
        kernels: how many kernels the runtime has timed in each step.
        at_once: nanoseconds of the whole network for each block.
    """

    steps: npt.NDArray[np.float64]
    kernels: npt.NDArray[np.int64]
    at_once: npt.NDArray[np.float64]

    @classmethod
    def of(cls, event: ProgramTimed) -> Walk:
        """What the times of a program with steps show."""
        return cls(steady(event.steps), np.asarray(event.kernels), np.asarray(event.long, dtype=np.float64))


def kernel_overhead(walks: Iterable[Walk], harness_ms: float) -> float:
    """What timing a kernel costs, in milliseconds: the median over the networks of a batch.

    It is what all steps of a network take longer than the network at once, shared equally among their kernels. One
    network alone shows it with an error of tens of microseconds, as much as a small operator takes; networks do not
    differ by more than that.

    Args:
        walks: of the networks of a batch.
        harness_ms: what calling the runtime costs.
    """
    found = []
    for walk in walks:
        walked = walk.steps.mean(axis=1).sum()
        found.append(((walked - walk.at_once.mean()) / NS_PER_MS + harness_ms) / walk.kernels.sum())
    return float(np.median(found)) if found else 0.0


def step_latencies(program: Program, walk: Walk, overhead_ms: float) -> dict[str, npt.NDArray[np.float64]]:
    """Latencies in milliseconds of the operators of a network that was run step by step, one for each block.

    An operator that stands in several places counts with their mean.

    Args:
        program: with its ``steps``.
        walk: of that network.
        overhead_ms: what timing a kernel costs.
    """
    operators = walk.steps / NS_PER_MS - overhead_ms * walk.kernels[:, None]
    places: dict[str, list[npt.NDArray[np.float64]]] = {}
    for (key, _), blocks in zip(program.steps, operators, strict=True):
        places.setdefault(key, []).append(blocks)
    return {key: np.mean(blocks, axis=0) for key, blocks in places.items()}


def robust(blocks: npt.ArrayLike, repeats: int) -> Estimate:
    """Mean of block estimates without a tenth at each end, and its standard error (infinite for a single block).

    No median and no narrower mean: while a core is slow for about half of the time, those jump from one of its speeds
    to the other, in one network further than in the next (``benchmarks/repetition.py``).
    """
    from scipy.stats import trim_mean
    from scipy.stats.mstats import trimmed_stde

    values = np.asarray(blocks, dtype=np.float64)
    trimmed = (int(TRIMMED * len(values)) + 1e-6) / len(values)  # what is left out; SciPy takes a share at its word
    error = float(trimmed_stde(values, (trimmed, trimmed))) if len(values) > 1 else float("inf")
    return Estimate(float(trim_mean(values, TRIMMED)), error, repeats)


def estimates(records: Iterable[Record], anchor: str) -> dict[str, Estimate]:
    """Program key to its latency, drift corrected: every batch is scaled so that the anchor takes its mean."""
    records = list(records)
    anchors = [record.anchor_ms for record in records if record.key == anchor]
    reference = float(np.mean(anchors)) if anchors else 1.0
    blocks: dict[str, list[float]] = {}
    passes: dict[str, int] = {}
    for record in records:
        blocks.setdefault(record.key, []).extend(b * reference / record.anchor_ms for b in record.blocks)
        passes[record.key] = passes.get(record.key, 0) + record.passes
    return {key: robust(values, passes[key]) for key, values in blocks.items()}
