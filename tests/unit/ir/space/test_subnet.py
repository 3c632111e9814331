"""SubNets: canonical form, JSON and arrays, sampling."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from autotailor.ir.errors import IllegalSubNetError, SpaceError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import SubNet, canonical, largest, sample, smallest
from autotailor.ir.space.variable import Modification, Space, Variable
from gated_space import SPACE, all_subnets


def test_variables_of_removed_blocks_stand_at_their_default() -> None:
    subnet = SubNet.from_assignment(SPACE, {"stage1.depth": 2, "block2.expand_ratio": 2, "block3.expand_ratio": 2})
    assert subnet.modifications == (Modification("stage1.depth", 2),)
    assert subnet == largest(SPACE).transform(Modification("stage1.depth", 2))


def test_json_and_array_round_trip() -> None:
    for subnet in all_subnets():
        assert SubNet.from_json(SPACE, subnet.to_json()) == subnet
        assert SubNet.from_array(SPACE, subnet.to_array()) == subnet


def test_sampling_is_uniform_over_distinct_subnets() -> None:
    rng = random.Random(0)
    draws = 40_000
    counts = Counter(sample(SPACE, rng) for _ in range(draws))
    expected = draws / SPACE.num_distinct
    assert len(counts) == SPACE.num_distinct
    chi_square = sum((n - expected) ** 2 / expected for n in counts.values())
    assert chi_square < 2 * SPACE.num_distinct


def test_sampling_takes_a_numpy_generator() -> None:
    assert sample(SPACE, np.random.default_rng(3)) == sample(SPACE, np.random.default_rng(3))


def test_counts_beyond_floats_are_drawn_by() -> None:
    kept = Gate.of(("depth",), np.array([False, True]))
    inner = [Variable(f"v{number}", "ratio", tuple(range(10)), 0, kept) for number in range(400)]
    space = Space((Variable("depth", "depth", (1, 2), 1), *inner))
    drawn = [sample(space, rng) for rng in (random.Random(0), np.random.default_rng(0))]
    assert [subnet.indices[0] for subnet in drawn] == [1, 1]


def test_smallest_removes_most() -> None:
    assert smallest(SPACE).assignment == {
        "resolution": 16, "stage1.depth": 2, "block1.expand_ratio": 2, "block2.expand_ratio": 4,
        "block3.expand_ratio": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ({"resolution": 17}, r"17 is not one of its choices \[16"),
        ({"stage9.depth": 1}, "unknown variable 'stage9"),
    ],
)
def test_unknown_choices_and_variables_are_named(assignment: dict[str, int], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        SubNet.from_assignment(SPACE, assignment)


@pytest.mark.parametrize("text", ["[1]", "{", '"x"'])
def test_json_that_is_no_subnet_is_refused(text: str) -> None:
    with pytest.raises(IllegalSubNetError, match="JSON object"):
        SubNet.from_json(SPACE, text)


@pytest.mark.parametrize("assignment", [None, 5, [], "{}"])
def test_an_assignment_that_is_no_mapping_is_refused(assignment: Any) -> None:
    with pytest.raises(IllegalSubNetError, match="a mapping of variables to choices, not "):
        SubNet.from_assignment(SPACE, assignment)


def test_indices_out_of_range_are_refused() -> None:
    with pytest.raises(IllegalSubNetError, match="resolution is outside"):
        canonical(SPACE, [2, 0, 0, 0, 0])
    with pytest.raises(IllegalSubNetError, match="shape"):
        canonical(SPACE, [0, 0])
