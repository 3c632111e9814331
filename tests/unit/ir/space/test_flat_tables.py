"""Flat tables have the sums of their terms."""

import numpy as np
import pytest

from autotailor.ir.errors import SpaceError
from autotailor.ir.space import flat_tables
from autotailor.ir.space.derived import Contribution, Derived
from autotailor.ir.space.flat_tables import FlatTables
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import stack
from gated_space import SPACE, all_subnets

FIRST = Gate(("stage1.depth",), (True, False, False))


def terms() -> tuple[Term, ...]:
    """Terms of every sort: without variables, alone and joint, gated by a variable of their own, over sums."""
    rng = np.random.default_rng(0)
    parts = [
        Contribution(("block2.expand_ratio",), np.array([[10], [20], [30]])),
        Contribution(("block3.expand_ratio",), np.array([[5], [25]])),
    ]
    return (
        Term((), np.array(0.25)),
        Term((), np.array(4.0), FIRST),
        Term(("resolution",), rng.random(2)),
        Term(("block1.expand_ratio", "resolution"), rng.random((2, 2)), FIRST),
        Term(("stage1.depth", "block3.expand_ratio"), rng.random((3, 2)), FIRST),
        Term(("resolution", "block2.expand_ratio", "block3.expand_ratio"), rng.random((2, 3, 2))),
        Term(("resolution",), rng.random((2, 5)), derived=Derived.of(parts)),
    )


@pytest.mark.parametrize("largest", [1, 6, 4096])
def test_sums_are_those_of_the_terms(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_tables, "LARGEST", largest)
    monkeypatch.setattr(flat_tables, "LONGEST", largest)
    monkeypatch.setattr(flat_tables, "ROWS", 7)
    rows = stack(all_subnets())
    flat = FlatTables.of(SPACE, terms())
    np.testing.assert_allclose(flat.sums(rows), sum(term.values(SPACE, rows) for term in terms()), rtol=1e-12)


def test_small_terms_share_a_table() -> None:
    flat = FlatTables.of(SPACE, terms())
    assert len(flat.tables) == 1
    assert [term.derived is not None for term in flat.others] == [True]


def test_terms_over_the_same_many_choices_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_tables, "LARGEST", 6)
    monkeypatch.setattr(flat_tables, "LONGEST", 24)
    rng = np.random.default_rng(1)
    wide = ("resolution", "stage1.depth", "block2.expand_ratio")  # 18 joint choices
    several = (*(Term(wide, rng.random((2, 3, 3))) for _ in range(3)), Term(("resolution",), rng.random(2)))
    wider = Term((*wide, "block3.expand_ratio"), rng.random((2, 3, 3, 2)))
    flat = FlatTables.of(SPACE, (*several, wider))
    assert [len(table) for table in flat.tables] == [18]
    assert flat.others == (wider,)
    rows = stack(all_subnets())
    np.testing.assert_allclose(flat.sums(rows), sum(t.values(SPACE, rows) for t in (*several, wider)), rtol=1e-12)


def test_a_row_has_the_same_sum_alone_and_among_others() -> None:
    rows = np.tile(stack(all_subnets()), (40, 1))
    metric = Metric("m", "ms", SPACE, terms(), constant=0.1)
    alone = [metric.predict(row)[0] for row in rows[:50]]
    assert metric.predict(rows)[:50].tolist() == alone


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_the_choices_is_refused(index: int) -> None:
    with pytest.raises(SpaceError, match=rf"index {index} of stage1.depth in row 1 is outside 0..2"):
        Metric("m", "ms", SPACE, terms()).predict([[0, 0, 0, 0, 0], [0, index, 0, 0, 0]])
