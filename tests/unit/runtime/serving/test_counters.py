"""Counters, and their text for Prometheus, read by a parser of its grammar."""

from __future__ import annotations

import re

import pytest

from autotailor.runtime.serving.counters import BUCKETS, EVENTS, Counters, prometheus

LINE = re.compile(r'^([a-z_]+)(\{[a-z]+="[^"]+"\})? (\S+)$')


def parsed(text: str) -> dict[str, float]:
    """Values by name and label; every sample must follow the type of its metric."""
    kinds: dict[str, str] = {}
    values = {}
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kinds[name] = line.split()
        elif not line.startswith("# HELP"):
            found = LINE.fullmatch(line)
            assert found, line
            base = re.sub(r"_(bucket|sum|count)$", "", found[1]) if "over_deadline" in found[1] else found[1]
            assert base in kinds
            assert (base.endswith("_total")) == (kinds[base] == "counter")
            values[found[1] + (found[2] or "")] = float(found[3])
    return values


def filled() -> Counters:
    counters = Counters([0, 0])
    for member, wall in ((0, 1.0), (1, 3.0), (1, 5.0), (1, 40.0)):
        counters.ran(member, 90.0 + member, wall, wall / 2, deadline_ms=4.0)
    return counters


def test_inferences_are_counted_by_member_and_by_deadline() -> None:
    counters = filled()
    assert (counters.inferences, counters.missed) == ([1, 3], 2)
    found = counters.to_dict(("a", "b"))
    assert found["mean_accuracy"] == pytest.approx((90 + 3 * 91) / 4)
    assert found["mean_wall_ms"] == pytest.approx(49 / 4)
    assert found["mean_cpu_ms"] == pytest.approx(49 / 8)
    assert found["by_member"] == {"a": 1, "b": 3}


def test_the_text_for_prometheus_has_the_same_numbers() -> None:
    values = parsed(prometheus(filled(), ("a", "b"), "b", {"load_slowdown": 1.5}))
    assert values['autotailor_inferences_total{member="b"}'] == 3
    assert values["autotailor_missed_total"] == 2
    assert values["autotailor_wall_seconds_total"] == pytest.approx(0.049)
    assert values['autotailor_active{member="a"}'] == 0
    assert values['autotailor_active{member="b"}'] == 1
    assert values["autotailor_load_slowdown"] == 1.5
    name = "autotailor_latency_over_deadline"
    buckets = [values[f'{name}_bucket{{le="{end}"}}'] for end in BUCKETS]
    assert buckets == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    assert values[f'{name}_bucket{{le="+Inf"}}'] == values[f"{name}_count"] == 4
    assert values[f"{name}_sum"] == pytest.approx(49 / 4)


def test_only_the_last_events_are_remembered() -> None:
    counters = Counters([0])
    for number in range(EVENTS + 5):
        counters.event(float(number), "up", "a", "b")
    assert len(counters.events) == EVENTS
    assert counters.events[-1] == {"seconds": EVENTS + 4.0, "event": "up", "from": "a", "to": "b"}


def test_nothing_has_no_mean() -> None:
    assert Counters([0]).to_dict(("a",))["mean_accuracy"] is None
