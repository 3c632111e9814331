"""What a running pool counts, as JSON and in Prometheus' text format."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BUCKETS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Upper ends of the histogram of latency over deadline."""
EVENTS = 64
"""Events that are remembered."""


@dataclass
class Counters:
    """Counts since the start.

    Attributes:
        inferences: by member.
        missed: inferences that took longer than their deadline.
        switches: to another member.
        errors: requests that failed.
        nothing_fits: decisions that no member fits.
        accuracy_sum: of the members that ran, in percent; over the inferences it is the mean accuracy.
        wall_ms, cpu_ms: sums over the inferences.
        ratios: inferences by latency over deadline, one count for each of ``BUCKETS`` and one above.
        events: the last ones: seconds since the start, what happened, from which member to which.
    """

    inferences: list[int]
    missed: int = 0
    switches: int = 0
    errors: int = 0
    nothing_fits: int = 0
    accuracy_sum: float = 0.0
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    ratio_sum: float = 0.0
    ratios: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=EVENTS))

    def ran(self, member: int, accuracy: float, wall_ms: float, cpu_ms: float, deadline_ms: float) -> bool:
        """Counts an inference; returns whether it has missed its deadline."""
        ratio = wall_ms / deadline_ms
        self.inferences[member] += 1
        self.accuracy_sum += accuracy
        self.wall_ms += wall_ms
        self.cpu_ms += cpu_ms
        self.ratio_sum += ratio
        self.ratios[next((i for i, end in enumerate(BUCKETS) if ratio <= end), len(BUCKETS))] += 1
        is_late = ratio > 1
        self.missed += is_late
        return is_late

    def event(self, seconds: float, what: str, before: str, after: str) -> None:
        """Remembers an event."""
        self.events.append({"seconds": round(seconds, 6), "event": what, "from": before, "to": after})

    def to_dict(self, members: Sequence[str]) -> dict[str, Any]:
        """All counts."""
        count = sum(self.inferences)
        return {
            "inferences": count,
            "by_member": dict(zip(members, self.inferences, strict=True)),
            "missed": self.missed,
            "switches": self.switches,
            "errors": self.errors,
            "nothing_fits": self.nothing_fits,
            "mean_accuracy": self.accuracy_sum / count if count else None,
            "mean_wall_ms": self.wall_ms / count if count else None,
            "mean_cpu_ms": self.cpu_ms / count if count else None,
            "events": list(self.events),
        }


def prometheus(counters: Counters, members: Sequence[str], active: str, gauges: Mapping[str, float]) -> str:
    """The counts in Prometheus' text format, version 0.0.4.

    Args:
        counters: the counts.
        members: their names, in the order of the pool.
        active: the member that runs.
        gauges: further values, by the name of the metric without its prefix.
    """
    lines: list[str] = []

    def metric(name: str, kind: str, said: str, values: Mapping[str, float]) -> None:
        full = f"autotailor_{name}"
        lines.extend((f"# HELP {full} {said}", f"# TYPE {full} {kind}"))
        lines.extend(f"{full}{labels} {value!r}" for labels, value in values.items())

    ran = {f'{{member="{name}"}}': count for name, count in zip(members, counters.inferences, strict=True)}
    metric("inferences_total", "counter", "Inferences by member.", ran)
    for name, said in (
        ("missed", "Inferences that took longer than their deadline."),
        ("switches", "Switches to another member."),
        ("errors", "Requests that failed."),
        ("nothing_fits", "Decisions that no member meets its deadline."),
    ):
        metric(f"{name}_total", "counter", said, {"": getattr(counters, name)})
    for name, said in (("wall", "Wall time of the inferences."), ("cpu", "CPU time of the inferences.")):
        metric(f"{name}_seconds_total", "counter", said, {"": getattr(counters, f"{name}_ms") / 1000})
    metric(
        "accuracy_percent_total", "counter", "Accuracy of the members that ran, summed.", {"": counters.accuracy_sum}
    )
    _histogram(lines, counters)
    runs = {f'{{member="{name}"}}': int(name == active) for name in members}
    metric("active", "gauge", "1 for the member that runs.", runs)
    for name, value in gauges.items():
        metric(name, "gauge", f"{name.replace('_', ' ').capitalize()}.", {"": value})
    return "".join(f"{line}\n" for line in lines)


def _histogram(lines: list[str], counters: Counters) -> None:
    name, total = "autotailor_latency_over_deadline", 0
    lines.extend((f"# HELP {name} Latency as a multiple of the deadline.", f"# TYPE {name} histogram"))
    for end, count in zip((*BUCKETS, "+Inf"), counters.ratios, strict=True):
        total += count
        lines.append(f'{name}_bucket{{le="{end}"}} {total}')
    lines.extend((f"{name}_sum {counters.ratio_sum!r}", f"{name}_count {total}"))
