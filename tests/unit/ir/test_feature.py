"""Features: their JSON is their identity."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.feature import OPERANDS, Follower, OperatorFeature, freeze_attributes

SIZES = st.lists(st.integers(1, 999), max_size=5).map(tuple)
SHAPES = st.lists(SIZES, max_size=3).map(tuple)
VALUES = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5),
    st.lists(st.integers(), max_size=4), st.lists(st.floats(0, 1), max_size=4),
)  # fmt: skip
ATTRIBUTES = st.dictionaries(st.text(max_size=5), VALUES, max_size=4).map(freeze_attributes)
FOLLOWERS = st.lists(st.builds(Follower, st.text(max_size=5), ATTRIBUTES), max_size=2).map(tuple)
CONV = OperatorFeature(
    "Conv", ((1, 3, 8, 8),), ((1, 4, 8, 8),), ((4, 3, 1, 1),), freeze_attributes({"group": 1}), (Follower("Relu"),)
)


@given(st.builds(OperatorFeature, st.text(max_size=5), SHAPES, SHAPES, SHAPES, ATTRIBUTES, FOLLOWERS))
def test_what_is_written_is_read(feature: OperatorFeature) -> None:
    again = OperatorFeature.from_json(feature.to_json())
    assert again == feature
    assert again.id == feature.id == hashlib.sha256(feature.to_json().encode()).hexdigest()[:12]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Gemm"},
        {"inputs": ((1, 3, 8, 9),)},
        {"outputs": ((1, 4, 8, 9),)},
        {"weights": ((4, 3, 1, 1), (4,))},
        {"attributes": (("group", 3),)},
        {"followers": (Follower("Clip"),)},
        {"followers": (Follower("Relu", (("alpha", 1),)),)},
    ],
    ids=str,
)
def test_whatever_latency_can_depend_on_changes_the_id(change: dict[str, Any]) -> None:
    assert replace(CONV, **change).id != CONV.id


def test_attributes_are_sorted_and_hashable() -> None:
    frozen = freeze_attributes({"strides": [2, 2], "group": 1})
    assert frozen == (("group", 1), ("strides", (2, 2)))
    assert hash(frozen) == hash(freeze_attributes({"group": 1, "strides": (2, 2)}))
    assert list(json.loads(replace(CONV, attributes=frozen).to_json())["attributes"]) == ["group", "strides"]
    assert CONV.attribute("group") == 1
    assert CONV.attribute("pads", (0, 0)) == (0, 0)


@pytest.mark.parametrize(
    ("order", "operands"),
    [(None, ((1, 2), (3, 4), (5,))), ("wxw", ((3, 4), (1, 2), (5,))), ("xww", ((1, 2), (3, 4), (5,)))],
)
def test_operands_come_in_the_order_in_which_they_are_read(order: str | None, operands: tuple[Any, ...]) -> None:
    attributes = freeze_attributes({} if order is None else {OPERANDS: order})
    assert OperatorFeature("MatMul", ((1, 2),), ((1, 4),), ((3, 4), (5,)), attributes).operands == operands
