"""Gates over one, two and three variables, and the distinct SubNets that they leave."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.gate import Gate, Table, both
from autotailor.ir.space.subnet import SubNet, canonical, sample
from autotailor.ir.space.variable import Space, Variable

DEPTH = Variable("stage1.depth", "depth", (0, 1), 0, least=1)
BRANCH = Variable("block1.branch", "branch", (0, 1), 1, Gate(("stage1.depth",), (True, False)))
INNER = Variable(
    "block1.expand_ratio", "expand_ratio", (2, 3, 4), 2,
    Gate(("stage1.depth", "block1.branch"), ((False, True), (False, False))),
)  # fmt: skip
FREE = Variable("resolution", "resolution", (16, 24, 32), 2)
NESTED = Space((DEPTH, BRANCH, INNER, FREE))


@pytest.mark.parametrize(
    "table",
    [(True, False, True), ((True, False), (False, False)), (((True, False), (False, True)), ((True, True),) * 2)],
    ids=["one variable", "two variables", "three variables"],
)
def test_a_gate_is_open_where_its_table_says(table: Table) -> None:
    array = np.array(table)
    gate = Gate(tuple("abc"[: array.ndim]), table)
    rows = np.argwhere(np.ones_like(array))[:, ::-1]  # columns the other way round
    positions = {name: column for column, name in enumerate(reversed(gate.variables))}
    assert gate.is_open(positions, rows).tolist() == array.ravel().tolist()
    assert [tuple(row) for row in gate.openings] == [tuple(row) for row in np.argwhere(array)]


def test_distinct_subnets_of_nested_gates_are_those_of_brute_force() -> None:
    choices = itertools.product(*(range(len(v.choices)) for v in NESTED))
    distinct = {SubNet(NESTED, row) for row in choices}
    assert NESTED.num_distinct == len(distinct) == 3 * (1 + 1 + 3)


def test_sampling_is_uniform_over_distinct_subnets_of_nested_gates() -> None:
    rng = random.Random(0)
    counts = Counter(sample(NESTED, rng) for _ in range(15_000))
    assert len(counts) == NESTED.num_distinct
    assert min(counts.values()) > 850
    assert max(counts.values()) < 1150


def test_the_canonical_form_of_nested_gates_is_its_own() -> None:
    rows = np.array(list(itertools.product(*(range(len(v.choices)) for v in NESTED))))
    once = canonical(NESTED, rows)
    assert (canonical(NESTED, once) == once).all()
    assert (once[once[:, 0] == 1][:, 1:3] == (BRANCH.default, INNER.default)).all()


@pytest.mark.parametrize(
    ("variables", "table"),
    [((), True), (("a", "a"), ((True,),)), (("a", "b"), (True, False)), (("a",), (True,) * 8193)],
    ids=["none", "twice the same", "of one axis", "of many choices"],
)
def test_other_tables_are_refused(variables: tuple[str, ...], table: Table) -> None:
    with pytest.raises(SpaceError, match=r"^gate: expected"):
        Gate(variables, table)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ((INNER, DEPTH, BRANCH), "its gate asks stage1.depth"),
        ((DEPTH, INNER), "its gate asks block1.branch"),
        ((Variable("stage1.depth", "depth", (0, 1, 2), 0), BRANCH), "knows 2 choices of stage1.depth, which has 3"),
    ],
    ids=["behind", "absent", "other choices"],
)
def test_a_space_refuses_a_gate_over_what_it_lacks(variables: tuple[Variable, ...], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(variables)


def test_two_gates_are_open_together_where_each_is_open() -> None:
    a, b = Gate(("a",), (True, False)), Gate(("b",), (False, True, True))
    assert both(None, a) is a
    assert both(a, None) is a
    assert a & a is a
    assert a & b == Gate(("a", "b"), ((False, True, True), (False, False, False)))
    assert Gate(("a",), (True, True)) & a == a
