"""Variables and the space that they span."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space, Variable
from gated_space import SPACE, all_subnets


def test_counts_agree_with_brute_force() -> None:
    subnets = all_subnets()
    assert SPACE.num_modifications == 12
    assert SPACE.num_variants == len(subnets)
    assert SPACE.num_distinct == len(set(subnets)) == len({s.id for s in subnets})


def test_completions_are_counted_as_brute_force_counts_them() -> None:
    """Up to a common factor, because free variables multiply all counts alike."""
    distinct = {subnet.indices for subnet in all_subnets()}
    for position, variable in enumerate(SPACE):
        before = [range(len(v.choices)) for v in SPACE.variables[:position]]
        for chosen in itertools.product(*before):
            counts = Counter(row[position] for row in distinct if row[:position] == chosen)
            if variable.gate is not None or not counts:
                continue
            expected = [counts[choice] for choice in range(len(variable.choices))]
            found = SPACE.completions(variable.name, chosen)
            assert [n * found[0] for n in expected] == [n * expected[0] for n in found], (variable.name, chosen)


@pytest.mark.parametrize(
    ("choices", "default", "message"),
    [
        ((), 0, "must be distinct and at least one"),
        ((1, 1), 0, "must be distinct"),
        ((1, 2), 2, "default index 2 is outside"),
        ((1, 2), -1, "default index -1"),
    ],
)
def test_variables_that_have_no_choice_or_no_default_are_refused(
    choices: tuple[int, ...], default: int, message: str
) -> None:
    with pytest.raises(SpaceError, match=f"variable depth: .*{message}"):
        Variable("depth", "depth", choices, default)


def test_names_are_distinct() -> None:
    with pytest.raises(SpaceError, match="must be distinct"):
        Space((SPACE.variables[0], SPACE.variables[0]))


def test_a_variable_is_found_by_owner_and_kind() -> None:
    space = Space((Variable("resolution", "resolution", (1,), 0), Variable("a.width", "width", (1,), 0, owner="a")))
    assert space.find("a", "width") is space["a.width"]
    assert space.find("", "resolution") is space["resolution"]
    assert space.find("a", "depth") is None


def test_distinct_subnets_do_not_count_what_is_gated() -> None:
    assert SPACE.num_distinct == len({SubNet(SPACE, s.indices).indices for s in all_subnets()}) < SPACE.num_variants
