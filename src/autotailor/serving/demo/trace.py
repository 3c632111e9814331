"""The trace of a pool under load: one row for each inference, and sums over stretches of time."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Sample:
    """One inference.

    Attributes:
        seconds: since the start.
        burdens: how many competed.
        member: that ran.
        accuracy: of the member, in percent.
        latency_ms, cpu_ms: wall and CPU time.
        deadline_ms: what the latency was to be at most.
        switched: whether another member had run before.
        nothing_fits: whether no member was expected to meet the deadline.
        slowdown: that the monitor assumes for operators.
        waiting: that the monitor assumes, as a share of CPU time.
    """

    seconds: float
    burdens: int
    member: str
    accuracy: float
    latency_ms: float
    cpu_ms: float
    deadline_ms: float
    switched: bool
    nothing_fits: bool
    slowdown: float
    waiting: float

    @property
    def is_late(self) -> bool:
        """Whether the deadline was missed."""
        return self.latency_ms > self.deadline_ms


@dataclass(frozen=True)
class Stretch:
    """Some inferences together.

    Attributes:
        seconds: of the first one.
        burdens: that competed.
        member: that ran most often.
        inferences: their number.
        median_ms, p95_ms: of the latencies.
        late: share that missed its deadline.
        accuracy: mean of the members that ran.
    """

    seconds: float
    burdens: int
    member: str
    inferences: int
    median_ms: float
    p95_ms: float
    late: float
    accuracy: float


def write_csv(samples: Iterable[Sample], path: Path) -> None:
    """Writes one line for each inference; truth values as 0 and 1."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([field.name for field in fields(Sample)])
        for sample in samples:
            values = asdict(sample).values()
            writer.writerow(
                [int(v) if isinstance(v, bool) else f"{v:.6g}" if isinstance(v, float) else v for v in values]
            )


def stretches(samples: Sequence[Sample], seconds: float) -> list[Stretch]:
    """Stretches of at most so many seconds, none of them across a change of the load."""
    return [summed(part) for part in _parts(samples, seconds)]


def by_load(samples: Sequence[Sample]) -> list[Stretch]:
    """One stretch for each phase of the load."""
    return stretches(samples, float("inf"))


def summed(samples: Sequence[Sample]) -> Stretch:
    """Some inferences, at least one, as one stretch."""
    latencies = np.array([sample.latency_ms for sample in samples])
    names = [sample.member for sample in samples]
    return Stretch(
        seconds=samples[0].seconds,
        burdens=samples[0].burdens,
        member=max(dict.fromkeys(names), key=names.count),
        inferences=len(samples),
        median_ms=float(np.median(latencies)),
        p95_ms=float(np.quantile(latencies, 0.95)),
        late=sum(sample.is_late for sample in samples) / len(samples),
        accuracy=sum(sample.accuracy for sample in samples) / len(samples),
    )


def _parts(samples: Sequence[Sample], seconds: float) -> Iterator[Sequence[Sample]]:
    begin = 0
    for end in range(1, len(samples) + 1):
        is_end = end == len(samples) or (
            samples[end].burdens != samples[begin].burdens or samples[end].seconds - samples[begin].seconds >= seconds
        )
        if is_end:
            yield samples[begin:end]
            begin = end
