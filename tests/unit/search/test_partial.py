"""Partial fronts: unions and products against all points, and what thinning may lose."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.search.partial import Partial, nothing, product, thinned, union

VARIABLES = 4
POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=8)
Point = tuple[float, float]


def front(points: list[Point]) -> list[Point]:
    """Points that no other one dominates, by rising latency."""
    return sorted({p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)})


def partial(points: list[Point], variable: int) -> Partial:
    """The front of some points; the choice of one variable is the number of the point."""
    kept = front(points)
    choices = np.zeros((len(kept), VARIABLES), dtype=np.int16)
    choices[:, variable] = [points.index(point) for point in kept]
    latency, loss = (np.array(values, dtype=float) for values in zip(*kept, strict=True))
    return Partial(latency, loss, choices)


def points_of(part: Partial) -> list[Point]:
    return list(zip(part.cost.tolist(), part.loss.tolist(), strict=True))


@given(POINTS, POINTS)
def test_a_union_is_the_front_of_all_points(first: list[Point], second: list[Point]) -> None:
    found = union([partial(first, 0), partial(second, 1)], VARIABLES, 100)
    assert points_of(found) == front([*first, *second])


@given(POINTS, POINTS)
def test_a_product_is_the_front_of_all_sums_and_knows_the_choices(first: list[Point], second: list[Point]) -> None:
    found = product(partial(first, 0), partial(second, 2), 100)
    assert points_of(found) == front([(a + c, b + d) for (a, b), (c, d) in itertools.product(first, second)])
    for point, (i, _, j, _) in zip(points_of(found), found.choices.tolist(), strict=True):
        assert point == (first[i][0] + second[j][0], first[i][1] + second[j][1])


def test_nothing_is_neutral_and_no_front_is_empty() -> None:
    part = partial([(1, 5), (2, 3)], 1)
    found = product(nothing(VARIABLES), part, 100)
    assert points_of(found) == points_of(part)
    np.testing.assert_array_equal(found.choices, part.choices)
    assert len(union([], VARIABLES, 100)) == 0


def test_one_more_variable_adds_its_choice_and_its_costs() -> None:
    part = partial([(1, 5), (2, 3)], 1)
    found = part.extended(3, 7, 0.5, -1.0)
    assert points_of(found) == [(1.5, 4.0), (2.5, 2.0)]
    assert found.choices[:, 3].tolist() == [7, 7]
    assert part.choices[:, 3].tolist() == [0, 0]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=60), st.integers(1, 20))
def test_for_every_dropped_point_one_is_kept_that_is_as_good_and_hardly_slower(points: list[Point], most: int) -> None:
    part = partial(points, 0)
    thin = thinned(part, most)
    assert len(thin) <= most + 1
    assert thin.slack >= part.slack
    for latency, loss in points_of(part):
        assert any(b <= loss and a <= latency + thin.slack + 1e-9 for a, b in points_of(thin))


@pytest.mark.parametrize("most", [2, 3])
def test_slack_adds_up(most: int) -> None:
    part = thinned(partial([(float(i), 10.0 - i) for i in range(10)], 0), most)
    assert part.slack == pytest.approx(9 / most)
    assert product(part, part, 1000).slack == pytest.approx(18 / most)
    assert union([part, partial([(20, 0)], 0)], VARIABLES, 1000).slack == pytest.approx(9 / most)
