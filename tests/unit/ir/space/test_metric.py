"""Terms and metrics."""

from typing import Any

import numpy as np
import pytest

from autotailor.ir.errors import SpaceError
from autotailor.ir.space import metric
from autotailor.ir.space.derived import Contribution, Derived
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.link import LOGIT
from autotailor.ir.space.metric import FlatTables, Metric, Term
from autotailor.ir.space.subnet import stack
from gated_space import SPACE, all_subnets

FIRST = Gate(("stage1.depth",), (True, False, False))


def test_a_metric_is_the_gated_sum_of_its_terms() -> None:
    gated = Term(("block3.expand_ratio",), np.array([5.0, 7.0]), Gate(("stage1.depth",), (True, False, False)))
    joint = Term(("resolution", "block1.expand_ratio"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    metric = Metric("latency", "ms", SPACE, (gated, joint), constant=0.5)
    rows = stack(all_subnets())
    expected = [0.5 + joint.table[r[0], r[2]] + (gated.table[r[4]] if r[1] < 1 else 0.0) for r in rows]
    assert np.allclose(metric.predict(rows), expected)


def test_a_link_maps_the_sum_of_constant_and_terms() -> None:
    terms = (Term(("resolution",), np.array([0.0, -1.0])),)
    rows = stack(all_subnets())
    plain, linked = (Metric("accuracy", "%", SPACE, terms, 2.0, *link) for link in ((), (LOGIT,)))
    np.testing.assert_array_equal(plain.linear(rows), plain.predict(rows))
    np.testing.assert_array_equal(linked.linear(rows), plain.predict(rows))
    np.testing.assert_allclose(linked.predict(rows), 100.0 / (1.0 + np.exp(-plain.predict(rows))))


def test_a_term_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(SpaceError, match="expected \\(2,\\)"):
        Metric("m", "ms", SPACE, (Term(("resolution",), np.zeros(3)),))


def test_a_term_over_derived_sums_is_looked_up_by_the_sum() -> None:
    first = Contribution(("block2.expand_ratio",), np.array([[10], [20], [30]]))
    second = Contribution(("block3.expand_ratio",), np.array([[5], [25]]))
    derived = Derived.of([first, second])
    assert derived.values.ravel().tolist() == [15, 25, 35, 45, 55]
    table = np.arange(10.0).reshape(2, 5)
    term = Term(("resolution",), table, derived=derived)
    assert term.scope == ("resolution", "block2.expand_ratio", "block3.expand_ratio")
    assert term.shape(SPACE) == (2, 5)
    rows = stack(all_subnets())
    sums = [first.table[row[3], 0] + second.table[row[4], 0] for row in rows]
    expected = [
        table[row[0], derived.values.ravel().tolist().index(total)] for row, total in zip(rows, sums, strict=True)
    ]
    np.testing.assert_array_equal(Metric("m", "ms", SPACE, (term,)).predict(rows), expected)


def test_an_array_of_another_space_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"metric m: expected an array \[n, 5\], got \[1, 4\]"):
        Metric("m", "ms", SPACE, ()).predict([0, 0, 0, 0])


@pytest.mark.parametrize(
    "rows",
    [None, "largest", {"resolution": 16}, all_subnets()[0], all_subnets(), [[0.5] * 5], [[0], [0, 1]], [[True] * 5]],
    ids=["None", "text", "mapping", "SubNet", "SubNets", "fractions", "ragged", "booleans"],
)
def test_what_is_no_array_of_choice_indices_is_refused(rows: Any) -> None:
    metric = Metric("latency", "ms", SPACE, (Term(("resolution",), np.array([0.0, 1.0])),))
    with pytest.raises(SpaceError, match=r"metric latency: expected choice indices \[n, 5\].* not \w+$"):
        metric.predict(rows)


def test_choice_indices_may_be_lists_and_whole_floating_point_numbers() -> None:
    metric = Metric("latency", "ms", SPACE, (Term(("resolution",), np.array([0.0, 1.0])),))
    assert metric.predict([[1, 0, 0, 0, 0], [0.0, 0, 0, 0, 0]]).tolist() == [1.0, 0.0]


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
    monkeypatch.setattr(metric, "LARGEST", largest)
    monkeypatch.setattr(metric, "LONGEST", largest)
    monkeypatch.setattr(metric, "ROWS", 7)
    rows = stack(all_subnets())
    flat = FlatTables.of(SPACE, terms())
    np.testing.assert_allclose(flat.sums(rows), sum(term.values(SPACE, rows) for term in terms()), rtol=1e-12)


def test_small_terms_share_a_table() -> None:
    flat = FlatTables.of(SPACE, terms())
    assert len(flat.tables) == 1
    assert [term.derived is not None for term in flat.others] == [True]


def test_terms_over_the_same_many_choices_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric, "LARGEST", 6)
    monkeypatch.setattr(metric, "LONGEST", 24)
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
