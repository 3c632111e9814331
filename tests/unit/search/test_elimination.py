"""The exact front equals brute force, on drawn spaces."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import networks

import autotailor
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import canonical
from autotailor.ir.space.variable import Space, Variable
from autotailor.search import Front, Objectives, SearchError, exact_front
from autotailor.search.elimination import Partial, nothing, product, thinned, union

VARIABLES = 4
POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=8)
Point = tuple[float, float]


def brute_force_front(objectives: Objectives) -> Front:
    """Front of a small space, by predicting every SubNet in it."""
    choices = (range(len(variable.choices)) for variable in objectives.space)
    grid = np.array(list(itertools.product(*choices)), dtype=np.int64)
    return Front.of(objectives, np.unique(canonical(objectives.space, grid), axis=0), "exact")


@st.composite
def drawn_objectives(draw: st.DrawFn) -> Objectives:
    """A depth and a branch that gate some of up to four others, and terms over up to three of them; sums are exact."""
    depth = Variable("stage1.depth", "depth", tuple(range(draw(st.integers(1, 3)))), 0)
    branch = Variable("block0.branch", "branch", (0, 1), draw(st.integers(0, 1)))
    variables = [depth, branch]

    def drawn_gate() -> Gate | None:
        asked = draw(st.sampled_from([(), (depth,), (depth, branch)]))
        rows = [draw(st.lists(st.booleans(), min_size=2, max_size=2)) for _ in depth.choices]
        table = tuple(tuple(row) for row in rows) if branch in asked else tuple(row[0] for row in rows)
        return Gate(tuple(v.name for v in asked), table) if asked else None

    for number in range(draw(st.integers(1, 4))):
        choices = draw(st.integers(1, 3))
        gate = drawn_gate()
        default = draw(st.integers(0, choices - 1))
        variables.append(Variable(f"block{number}.expand_ratio", "expand_ratio", tuple(range(choices)), default, gate))
    space = Space(tuple(variables))

    def terms() -> tuple[Term, ...]:
        drawn = []
        for _ in range(draw(st.integers(0, 5))):
            scope = draw(st.lists(st.sampled_from(variables), max_size=3, unique_by=lambda v: v.name))
            shape = tuple(len(v.choices) for v in scope)
            size = int(np.prod(shape))
            numbers = draw(st.lists(st.integers(-8, 64), min_size=size, max_size=size))
            gate = drawn_gate()
            drawn.append(Term(tuple(v.name for v in scope), np.reshape(numbers, shape) / 8.0, gate))
        return tuple(drawn)

    return Objectives(Metric("accuracy", "%", space, terms(), 90.0), Metric("latency", "ms", space, terms(), 1.0))


@settings(max_examples=150, deadline=None)
@given(drawn_objectives())
def test_equals_brute_force(objectives: Objectives) -> None:
    best, exact = brute_force_front(objectives), exact_front(objectives)
    assert exact.slack == 0
    np.testing.assert_array_equal(exact.front.cost, best.cost)
    np.testing.assert_array_equal(exact.front.accuracy, best.accuracy)


@settings(max_examples=100, deadline=None)
@given(drawn_objectives())
def test_front_is_canonical_and_predicted_by_the_metrics(objectives: Objectives) -> None:
    front = exact_front(objectives).front
    assert all((subnet.to_array() == row).all() for subnet, row in zip(front.subnets, front.indices, strict=True))
    np.testing.assert_array_equal(front.cost, objectives.cost.predict(front.indices))
    np.testing.assert_array_equal(front.accuracy, objectives.accuracy.predict(front.indices))


def test_a_residual_space(residual_space, objectives_of) -> None:
    objectives = objectives_of(residual_space(2, 3, 1), seed=3)
    best, exact = brute_force_front(objectives), exact_front(objectives)
    assert len(best) > 20
    np.testing.assert_allclose(exact.front.cost, best.cost, rtol=1e-12)
    np.testing.assert_allclose(exact.front.accuracy, best.accuracy, rtol=1e-12)


def test_a_space_of_merged_blocks() -> None:
    """The gates of the operators behind one another are a chain, through which the exact front still finds its way."""
    space = {"alternatives": {"merged": [1, 2]}, "blocks": {"Bottleneck": {"expand_ratio": [0.25, 0.5]}}}
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    rng = np.random.default_rng(0)
    terms = [Term((v.name,), -rng.random(len(v.choices)), v.gate) for v in net.space]
    objectives = Objectives(Metric("accuracy", "%", net.space, tuple(terms), 90.0), net.macs())
    best, exact = brute_force_front(objectives), exact_front(objectives)
    assert any(str(c).startswith("merged") for subnet in best.subnets for c in subnet.assignment.values())
    assert exact.slack == 0
    np.testing.assert_allclose(exact.front.cost, best.cost, rtol=1e-12)
    np.testing.assert_allclose(exact.front.accuracy, best.accuracy, rtol=1e-12)


def test_thinning_is_bounded_by_its_slack(residual_space, objectives_of) -> None:
    objectives = objectives_of(residual_space(2, 3, 1), seed=4)
    best, thin = brute_force_front(objectives), exact_front(objectives, max_points=12)
    assert thin.slack > 0
    assert len(thin.front) <= 13
    for latency, accuracy in zip(best.cost, best.accuracy, strict=True):
        assert (thin.front.accuracy[thin.front.cost <= latency + thin.slack + 1e-9] >= accuracy - 1e-9).any()


def test_a_space_of_billions_is_quick(residual_space, objectives_of) -> None:
    space = residual_space(4, 4, 2)
    assert space.num_distinct > 10**10
    assert len(exact_front(objectives_of(space)).front) > 100


def test_too_coupled_a_space_is_refused(residual_space, objectives_of) -> None:
    with pytest.raises(SearchError, match=r"table of \d+ entries .* at most 20; raise search.exact_table"):
        exact_front(objectives_of(residual_space(2, 2, 1)), max_table=20)


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
