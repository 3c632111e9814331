"""Variables, spaces, SubNets: counts, canonical form, sampling."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from autotailor.ir.errors import IllegalSubNetError, SpaceError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import SubNet, canonical, largest, sample, smallest, stack
from autotailor.ir.space.variable import Modification, Space, Variable

SPACE = Space(
    (
        Variable("resolution", "resolution", (16, 32), 1),
        Variable("stage1.depth", "depth", (0, 1, 2), 0),
        Variable("block1.expand_ratio", "expand_ratio", (2, 4), 1),
        Variable("block2.expand_ratio", "expand_ratio", (2, 3, 4), 2, Gate(("stage1.depth",), (True, True, False))),
        Variable("block3.expand_ratio", "expand_ratio", (2, 4), 1, Gate(("stage1.depth",), (True, False, False))),
    )
)


def all_subnets() -> list[SubNet]:
    return [SubNet(SPACE, i) for i in itertools.product(*(range(len(v.choices)) for v in SPACE))]


def test_counts_agree_with_brute_force() -> None:
    subnets = all_subnets()
    assert SPACE.num_modifications == 12
    assert SPACE.num_variants == len(subnets)
    assert SPACE.num_distinct == len(set(subnets)) == len({s.id for s in subnets})


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


def test_smallest_removes_most() -> None:
    assert smallest(SPACE).assignment == {
        "resolution": 16, "stage1.depth": 2, "block1.expand_ratio": 2, "block2.expand_ratio": 4,
        "block3.expand_ratio": 4,
    }  # fmt: skip


def test_a_metric_is_the_gated_sum_of_its_terms() -> None:
    gated = Term(("block3.expand_ratio",), np.array([5.0, 7.0]), Gate(("stage1.depth",), (True, False, False)))
    joint = Term(("resolution", "block1.expand_ratio"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    metric = Metric("latency", "ms", SPACE, (gated, joint), constant=0.5)
    rows = stack(all_subnets())
    expected = [0.5 + joint.table[r[0], r[2]] + (gated.table[r[4]] if r[1] < 1 else 0.0) for r in rows]
    assert np.allclose(metric.predict(rows), expected)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [({"resolution": 17}, r"17 is none of its choices \[16, 32\]"), ({"stage9.depth": 1}, "unknown variable 'stage9")],
)
def test_unknown_choices_and_variables_are_named(assignment: dict[str, int], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        SubNet.from_assignment(SPACE, assignment)


@pytest.mark.parametrize("text", ["[1]", "{", '"x"'])
def test_json_that_is_no_subnet_is_refused(text: str) -> None:
    with pytest.raises(IllegalSubNetError, match="JSON object"):
        SubNet.from_json(SPACE, text)


def test_indices_out_of_range_are_refused() -> None:
    with pytest.raises(IllegalSubNetError, match="resolution is outside"):
        canonical(SPACE, [2, 0, 0, 0, 0])
    with pytest.raises(IllegalSubNetError, match="shape"):
        canonical(SPACE, [0, 0])


def test_a_term_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(SpaceError, match="expected \\(2,\\)"):
        Metric("m", "ms", SPACE, (Term(("resolution",), np.zeros(3)),))
