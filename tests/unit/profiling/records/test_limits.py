"""Numbers and operators that make no sense."""

import itertools
import json
import math
from typing import Any

import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.records.limits import (
    MOST_BLOCKS,
    RANGES,
    Range,
    heap_difference,
    read_feature,
    refusal,
    refusal_of_blocks,
)

RELU = OperatorFeature("Relu", ((1, 4),), ((1, 4),))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "1", [1], 1e300, -1])
def test_no_range_has_what_is_no_number_or_far_away(value: Any) -> None:
    assert not any(limits.has(value) for limits in RANGES.values())


def test_a_range_has_its_ends_and_may_lack_or_want_whole_numbers() -> None:
    limits = Range(1, 5)
    assert [limits.has(value) for value in (0.99, 1, 2.5, 5, 5.01, None)] == [False, True, True, True, False, False]
    assert Range(1, 5, may_lack=True).has(None)
    assert [Range(1, 5, is_whole=True).has(value) for value in (2, 2.0)] == [True, False]
    assert [limits.clamp(value) for value in (-3, 2, 9)] == [1, 2, 5]
    assert math.isnan(limits.clamp(math.nan))
    assert str(Range(1, 5, is_whole=True)) == "a whole number from 1 to 5"


def test_quotients_and_products_of_permitted_numbers_are_finite() -> None:
    ends = [end for limits in RANGES.values() for end in (limits.least, limits.most)]
    for a, b in itertools.product(ends, repeat=2):
        assert math.isfinite(a * b)
        assert not b or math.isfinite(a / b)


def test_the_first_number_that_makes_no_sense_is_named() -> None:
    assert refusal({"latency_ms": 1.0, "repeats": 3, "label": math.nan}) is None
    assert refusal({"latency_ms": 1.0, "repeats": 0}) == "repeats is 0, expected a whole number from 1 to 1e+12"


@pytest.mark.parametrize("blocks", [(), "12", 3, None, (1.0, "2"), (math.nan,), (1.0,) * (MOST_BLOCKS + 1)])
def test_blocks_that_make_no_sense_are_refused(blocks: Any) -> None:
    assert refusal_of_blocks(blocks) is not None
    assert refusal_of_blocks((-0.01, 0.0, 2)) is None


@pytest.mark.parametrize(
    ("megabytes", "expected"),
    [(None, None), (2.5, 2.5), (0, 0), (-0.5, 0.0), (-1.5, None), (1e12, None), (math.nan, None)],
)
def test_a_difference_of_heaps_is_no_less_than_nothing(megabytes: float | None, expected: float | None) -> None:
    assert heap_difference(megabytes) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"kind": ""}, {"kind": 7}, {"kind": "a\nb"}, {"inputs": [[1.5]]}, {"inputs": [[-1]]}, {"inputs": [[True]]},
        {"outputs": 3}, {"attributes": {"a": None}}, {"attributes": {"a": [[1]]}}, {"attributes": []},
        {"followers": [["Relu"]]}, {"followers": [[3, {}]]}, {"weights": [["x"]]}, {"setting": {"a": None}},
    ],
    ids=str,
)  # fmt: skip
def test_a_text_that_describes_no_operator_is_refused(change: dict[str, Any]) -> None:
    text = json.dumps(json.loads(RELU.to_json()) | change)
    with pytest.raises(ValueError, match="no operator"):
        read_feature(text)
    assert read_feature(RELU.to_json()) == RELU
