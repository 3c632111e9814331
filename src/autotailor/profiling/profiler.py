"""Operators x device -> LUT: each distinct operator measured until it is known well enough, or time is up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.differential import Estimate, robust
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.journal import Journal, Record
from autotailor.profiling.lut import LUT, LUTRow
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.session import Batch, Session

BATCH_PROGRAMS = 16
BATCH_MB = 1024.0
FIRST_SECONDS = (0.02, 0.1)
"""Least and most seconds for each operator's first visit."""
LATER_SECONDS = 0.15
LEAST_LATENCY_MS = 1e-5
"""An operator that costs less than a copy's noise counts as this."""


def estimates(records: Iterable[Record], anchor: str) -> dict[str, Estimate]:
    """Program key to its latency, drift corrected: every batch is scaled so that the anchor takes its median."""
    records = list(records)
    anchors = [record.anchor_ms for record in records if record.key == anchor]
    reference = float(np.median(anchors)) if anchors else 1.0
    blocks: dict[str, list[float]] = {}
    passes: dict[str, int] = {}
    for record in records:
        blocks.setdefault(record.key, []).extend(b * reference / record.anchor_ms for b in record.blocks)
        passes[record.key] = passes.get(record.key, 0) + record.passes
    return {key: robust(values, passes[key]) for key, values in blocks.items()}


def make_batches(programs: Sequence[Program], seconds_each: float) -> list[Batch]:
    """Consecutive programs in batches that fit into memory."""
    batches: list[list[Program]] = []
    for program in programs:
        if not batches or len(batches[-1]) >= BATCH_PROGRAMS or _memory(batches[-1]) + program.memory_mb > BATCH_MB:
            batches.append([])
        batches[-1].append(program)
    return [Batch(tuple(batch), seconds_each * (len(batch) + 1)) for batch in batches]


def _memory(programs: Iterable[Program]) -> float:
    return sum(program.memory_mb for program in programs)


def profile(
    operators: Sequence[OperatorFeature],
    device: DeviceConfig,
    journal: Path,
    *,
    places: Sequence[int] | None = None,
) -> LUT:
    """Measures distinct operators on a device, most used first.

    Args:
        operators: distinct fused operators, as the runtime's fusion rules make them.
        device: where to measure, how precisely, and for how long at most.
        journal: JSON lines of all measurements; what it already knows of this device is not measured again.
        places: how many places of the SuperNet use each operator; without it the order given counts.

    Returns:
        The LUT, rows in the order of ``operators``, then the anchor operator (it tells later measurements how fast
        the machine was); deterministic in the journal.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: an operator's kind is not known, or the runtime cannot run it.
    """
    operators = list(dict.fromkeys(operators))
    uses = dict(zip(operators, places, strict=True)) if places else {}
    with Session(device) as session:
        programs = {f.id: session.runtime.replicas(f) for f in sorted(operators, key=lambda f: -uses.get(f, 0))}
        run = _Run(session, Journal(journal), programs, {f.id: uses.get(f, 1) for f in operators})
        run.measure()
        known = run.known()
        fingerprint, anchor = session.fingerprint.id, session.runtime.anchor()
    rows = dict.fromkeys((*operators, *([anchor] if anchor.id in known else [])))
    return LUT(tuple(_row(feature, known[feature.id], fingerprint) for feature in rows))


def _row(feature: OperatorFeature, estimate: Estimate, fingerprint: str) -> LUTRow:
    latency = max(estimate.latency_ms, LEAST_LATENCY_MS)
    return LUTRow(feature, fingerprint, latency, estimate.standard_error, estimate.repeats)


class _Run:
    """One profiling run: a first visit of every operator, then of those that are not known well enough."""

    def __init__(self, session: Session, journal: Journal, programs: dict[str, Program], uses: dict[str, int]) -> None:
        self.session = session
        self.journal = journal
        self.programs = programs
        self.uses = uses
        self.records = journal.records(session.fingerprint.id)
        self.budget = session.device.max_minutes * 60
        self.spent = sum(record.seconds for record in self.records if record.key in programs)

    def known(self) -> dict[str, Estimate]:
        """What is known so far."""
        return estimates(self.records, self.session.anchor.key)

    def vague(self, known: dict[str, Estimate]) -> list[str]:
        """Operators above the precision target, those that matter most first."""
        target = self.session.device.precision_target
        keys = [key for key in self.programs if known[key].relative_error > target]
        return sorted(keys, key=lambda key: -self.uses[key] * known[key].standard_error)

    def measure(self) -> None:
        """Measures until all operators meet the target or the time budget is spent."""
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeElapsedColumn()) as progress:
            self.bar, self.task = progress, progress.add_task("operators measured", total=len(self.programs))
            known = self.known()
            missing = [key for key in self.programs if key not in known]
            self.show()
            if missing:
                each = 0.6 * max(0.0, self.budget - self.spent) / len(missing)
                self.visit(missing, min(max(each, FIRST_SECONDS[0]), FIRST_SECONDS[1]))
            while (vague := self.vague(self.known())) and self.budget - self.spent > LATER_SECONDS:
                affordable = math.floor((self.budget - self.spent) / LATER_SECONDS)
                self.visit(vague[: max(1, min(affordable, len(vague)))], LATER_SECONDS)

    def visit(self, keys: Sequence[str], seconds_each: float) -> None:
        """Measures some operators once."""
        failures = self.session.measure(make_batches([self.programs[key] for key in keys], seconds_each), self.take)
        if failures:
            reasons = "; ".join(f"operator {key}: {reason}" for key, reason in sorted(failures.items()))
            raise ProfilingError(
                f"device {self.session.device.name}: {len(failures)} operators cannot be measured ({reasons}); "
                "the others are in the journal; correct the layer that the runtime writes for them, or leave them out"
            )

    def take(self, records: list[Record]) -> None:
        """Writes a batch's records into the journal."""
        self.journal.append(records)
        self.records += records
        self.spent += sum(record.seconds for record in records)
        self.show()

    def show(self) -> None:
        """Moves the progress bar to what is known well enough."""
        known = self.known()
        target = self.session.device.precision_target
        done = sum(key in known for key in self.programs)
        good = sum(key in known and known[key].relative_error <= target for key in self.programs)
        self.bar.update(self.task, completed=done, description=f"operators measured ({good} within {target:.0%})")
