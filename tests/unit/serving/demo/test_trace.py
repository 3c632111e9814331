"""The trace: its file, and sums over stretches of time."""

import csv
from pathlib import Path

import pytest

from autotailor.serving.demo.trace import Sample, by_load, stretches, summed, write_csv


def sample(seconds: float, burdens: int, latency: float, member: str = "a") -> Sample:
    return Sample(seconds, burdens, member, 90.0, latency, latency / 2, 4.0, False, False, 1.0, 0.5)


SAMPLES = [
    *(sample(i / 10, 0, 1.0 + i) for i in range(5)),
    *(sample(0.5 + i / 10, 2, 8.0, "b") for i in range(3)),
]


def test_a_phase_is_one_stretch() -> None:
    first, second = by_load(SAMPLES)
    assert (first.burdens, first.inferences, first.member, first.late) == (0, 5, "a", 0.2)
    assert (second.burdens, second.inferences, second.member, second.late) == (2, 3, "b", 1.0)
    assert first.median_ms == 3.0
    assert first.p95_ms == pytest.approx(4.8)


def test_stretches_end_with_their_time_and_with_the_load() -> None:
    found = stretches(SAMPLES, 0.25)
    assert [(part.seconds, part.inferences, part.burdens) for part in found] == [(0.0, 3, 0), (0.3, 2, 0), (0.5, 3, 2)]
    assert sum(part.inferences for part in found) == len(SAMPLES)


def test_the_member_of_a_stretch_is_the_one_that_ran_most() -> None:
    assert summed([sample(0, 0, 1, "a"), sample(0, 0, 1, "b"), sample(0, 0, 1, "b")]).member == "b"


def test_the_file_has_a_line_for_each_inference(tmp_path: Path) -> None:
    write_csv(SAMPLES, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(SAMPLES)
    assert rows[7] == {
        "seconds": "0.7", "burdens": "2", "member": "b", "accuracy": "90", "latency_ms": "8", "cpu_ms": "4",
        "deadline_ms": "4", "switched": "0", "nothing_fits": "0", "slowdown": "1", "waiting": "0.5",
    }  # fmt: skip
