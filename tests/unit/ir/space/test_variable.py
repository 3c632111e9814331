"""Variables and the space that they span."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from autotailor.ir.errors import SpaceError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import SubNet, sample
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


def merging(blocks: int, singles: int) -> Space:
    """A chain of blocks, each as it is in one of some ways, or in place of itself and the next one or two."""
    variables: list[Variable] = []
    for number in range(blocks):
        room = min(2, blocks - 1 - number)
        choices = tuple(f"single:{way}" for way in range(singles)) + ("merged:1", "merged:2")[:room]
        before = variables[-2:]
        table = np.ones([len(each.choices) for each in before], dtype=bool)
        for place, each in enumerate(reversed(before), 1):
            swallowing = [choice in ("merged:1", "merged:2")[place - 1 :] for choice in each.choices]
            table &= ~np.array(swallowing).reshape([-1 if each is other else 1 for other in before])
        gate = Gate.of(tuple(each.name for each in before), table) if before else None
        variables.append(Variable(f"block{number}.operator", "operator", choices, 0, gate))
    return Space(tuple(variables))


@pytest.mark.parametrize(
    ("blocks", "singles", "count"),
    [
        *((3, 1, 4), (4, 1, 7), (8, 1, 81), (16, 1, 10_609), (33, 1, 334_745_777)),
        *((4, 3, 115), (8, 3, 15_061), (16, 3, 258_371_689), (33, 3, 257_232_597_208_434_195)),
    ],
)
def test_chains_of_merged_blocks_are_counted(blocks: int, singles: int, count: int) -> None:
    """AdaptiveNet, section 7.2: f(n) = w f(n - 1) + f(n - 2) + f(n - 3); its 1.06e5 for ResNet50 is a misprint."""
    space = merging(blocks, singles)
    assert space.num_distinct == count
    if blocks <= 4:
        rows = itertools.product(*(range(len(v.choices)) for v in space))
        assert len({SubNet(space, row) for row in rows}) == count


def test_subnets_of_a_chain_are_drawn_uniformly() -> None:
    space, rng = merging(5, 1), random.Random(0)
    drawn = Counter(sample(space, rng) for _ in range(6_500))
    assert len(drawn) == space.num_distinct == 13
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-3


def test_a_long_chain_is_counted_and_drawn_from() -> None:
    """Each variable asks the one before: a chain in which all from some place on are closed."""
    chain = [Variable("v0", "depth", (1, 2), 0)]
    for number in range(1, 1200):
        gate = Gate.of((chain[-1].name,), np.array([False, True]))
        chain.append(Variable(f"v{number}", "depth", (1, 2), 0, gate))
    space = Space(tuple(chain))
    assert space.num_distinct == 1201
    indices = sample(space, random.Random(0)).indices
    assert 0 < sum(indices) == len("".join(map(str, indices)).partition("0")[0]) < 1200
