from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.exits.answers import Answers, Costs, ExitError, Policy
from autotailor.exits.thresholds import dominated, front, grids, safe, within
from simulated_exits import answers

COSTS = Costs((2.0, 3.0, 5.0), (0.2, 0.3))


@st.composite
def tiny(draw: st.DrawFn) -> tuple[Answers, Costs]:
    exits, pictures = draw(st.integers(1, 4)), draw(st.integers(2, 9))
    number = st.floats(0, 1, width=16)
    rows = st.lists(st.lists(number, min_size=exits, max_size=exits), min_size=pictures, max_size=pictures)
    right = st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=exits + 1, max_size=exits + 1),
        min_size=pictures,
        max_size=pictures,
    )
    cost = st.integers(1, 9).map(float)
    segments = draw(st.lists(cost, min_size=exits + 1, max_size=exits + 1))
    heads = draw(st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=exits, max_size=exits))
    return Answers(np.array(draw(rows)), np.array(draw(right))), Costs(tuple(segments), tuple(heads))


def by_hand(seen: Answers, costs: Costs, most: int, worst: float) -> list[Policy]:
    """Each combination of thresholds, asked picture by picture."""
    found = []
    for chosen in product(*([*grid, None] for grid in grids(seen.confidence, most))):
        reach = costs.reach([each is not None for each in chosen])
        last = next((e for e, each in enumerate(chosen) if each == 0), len(chosen))
        if reach[last] <= worst:
            found.append(Policy(chosen, 0.0, 0.0, 0.0, float(reach[last])).on(seen, costs))
    return found


@given(tiny(), st.sampled_from([4.0, 12.0, np.inf]))
@settings(max_examples=60, deadline=None)
def test_no_combination_of_thresholds_is_better_than_the_front(case: tuple[Answers, Costs], worst: float) -> None:
    seen, costs = case
    found = [(each.accuracy, safe(each, len(seen))) for each in front(seen, costs, worst=worst, most=5)]
    for policy in by_hand(seen, costs, 5, worst):
        accuracy, cost = policy.accuracy - 1e-9, safe(policy, len(seen)) + 1e-6
        assert any(best >= accuracy and least <= cost for best, least in found)


@given(tiny())
@settings(max_examples=60, deadline=None)
def test_numbers_of_the_front_are_those_of_its_thresholds(case: tuple[Answers, Costs]) -> None:
    seen, costs = case
    for policy in front(seen, costs, most=6):
        again = policy.on(seen, costs)
        assert (policy.accuracy, policy.expected, policy.spread) == pytest.approx(
            (again.accuracy, again.expected, again.spread), abs=1e-6
        )
        assert policy.paid(seen, costs).max() <= policy.worst + 1e-9


def test_a_budget_of_the_expected_cost_holds_on_unseen_pictures_in_19_of_20_splits() -> None:
    kept = []
    for seed in range(200):
        both = answers(1000, seed)
        chosen = within(front(both.of(np.arange(500)), COSTS), 6.0, 500)
        assert chosen is not None
        kept.append(chosen.on(both.of(np.arange(500, 1000)), COSTS).expected <= 6.0)
    assert np.mean(kept) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 200)


def test_without_the_margin_the_budget_would_break_in_half_of_the_splits() -> None:
    kept = []
    for seed in range(60):
        both = answers(1000, seed)
        found = front(both.of(np.arange(500)), COSTS)
        chosen = [policy for policy in found if policy.expected <= 6.0][-1]
        kept.append(chosen.on(both.of(np.arange(500, 1000)), COSTS).expected <= 6.0)
    assert np.mean(kept) < 0.75


def test_a_worst_cost_below_the_whole_network_ends_it_at_an_exit() -> None:
    found = front(answers(300, 0), COSTS, worst=6.0)
    assert found
    assert max(policy.worst for policy in found) <= 6.0
    assert all(0.0 in policy.thresholds for policy in found)
    assert front(answers(300, 0), COSTS, worst=1.0) == []


def test_thresholds_of_four_exits_are_no_worse_than_those_of_any_one_of_them() -> None:
    seen = answers(400, 1, (0.2, 0.5, 0.9, 1.4, 2.0))
    costs = Costs((1.0, 1.0, 1.0, 1.0, 1.0), (0.1,) * 4)
    found = front(seen, costs, most=28)
    alone = [front(seen.only([e]), costs.only([e]), most=28) for e in range(4)]
    assert len(found) > 20
    for budget in (2.0, 3.0, 4.0):
        best = within(found, budget, len(seen))
        assert best is not None
        for single in alone:
            other = within(single, budget, len(seen))
            assert other is None or other.accuracy <= best.accuracy + 1e-12


def test_five_exits_are_refused() -> None:
    with pytest.raises(ExitError, match="at most 4 exits"):
        front(answers(10, 0, (0.1, 0.2, 0.3, 0.4, 0.5, 1.0)), Costs((1.0,) * 6, (0.0,) * 5))


def test_an_exit_no_better_than_an_earlier_one_is_dominated() -> None:
    right = np.array([[1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]], dtype=float)
    assert dominated(Answers(np.zeros((3, 3)), right)) == (1,)
