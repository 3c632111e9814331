"""Range queries, against a loop over all rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotailor.runtime import Entry, Limits, PoolError, Table


def entries(n: int, rng: np.random.Generator) -> list[Entry]:
    """Members with ties, and some without energy."""
    return [
        Entry(
            subnet=f"s{i}",
            accuracy=float(rng.integers(0, 40)),
            split_ms=tuple(rng.uniform(0, 1, 3)),
            energy_mj=math.nan if rng.random() < 0.1 else float(rng.uniform(0, 10)),
            memory_mb=float(rng.uniform(0, 10)),
        )
        for i in range(n)
    ]


def meets(entry: Entry, limits: Limits) -> bool:
    return (
        entry.latency_ms <= limits.latency_ms
        and (limits.energy_mj == math.inf or entry.energy_mj <= limits.energy_mj)
        and entry.memory_mb <= limits.memory_mb
        and entry.accuracy >= limits.accuracy
    )


@pytest.mark.parametrize("block", [1, 7, 2048])
def test_queries_equal_a_loop_over_all_rows(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.runtime.table.BLOCK", block)
    rng = np.random.default_rng(block)
    table = Table.of(entries(60, rng))
    answers = set()
    for _ in range(200):
        bounds = [float(rng.choice([math.inf, rng.uniform(0, top)])) for top in (2.5, 8, 8)]
        limits = Limits(*bounds, accuracy=float(rng.choice([-math.inf, rng.integers(0, 41)])))
        expected = [row for row, entry in enumerate(table.entries) if meets(entry, limits)]
        assert table.within(limits).tolist() == expected
        assert table.best(limits) == (expected[0] if expected else None)
        answers.add(table.best(limits))
    assert None in answers
    assert len(answers) > 5


def test_queries_among_a_hundred_thousand_rows_equal_a_loop_with_four_limits() -> None:
    rng = np.random.default_rng(3)
    table = Table.of(entries(100_000, rng))
    for latency, energy, memory, accuracy in rng.uniform(0, [1.0, 2.0, 2.0, 40.0], (6, 4)):
        limits = Limits(latency, energy, memory, accuracy)
        expected = [row for row, entry in enumerate(table.entries) if meets(entry, limits)]
        assert table.within(limits).tolist() == expected
        assert table.best(limits) == (expected[0] if expected else None)


def test_rows_fall_in_accuracy_and_the_fastest_is_known() -> None:
    table = Table.of(entries(30, np.random.default_rng(0)))
    assert (np.diff(table.accuracy) <= 0).all()
    assert table.latency_ms[table.fastest] == min(entry.latency_ms for entry in table.entries)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "at least one"),
        ([Entry("a", 1.0, (1.0, 0.0, 0.0)), Entry("a", 2.0, (1.0, 0.0, 0.0))], "distinct"),
        ([Entry("a", 1.0, (0.0, 0.0, 0.0))], "member a"),
        ([Entry("a", math.nan, (1.0, 0.0, 0.0))], "member a"),
        ([Entry("a", 1.0, (2.0, -1.0, 0.0))], "member a"),
    ],
)
def test_a_table_of_impossible_members_is_refused(given: list[Entry], message: str) -> None:
    with pytest.raises(PoolError, match=message):
        Table.of(given)
