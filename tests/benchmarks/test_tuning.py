"""The search for a learning rate."""

import math

import pytest
from controls.tuning import MOST, at_end, best, tune


def peak(at: float) -> dict[float, float]:
    """A search where accuracy is highest at one learning rate."""
    return tune(lambda lr: -abs(math.log(lr / at)), 0.01)


def test_three_rates_are_enough_where_the_middle_one_is_best() -> None:
    assert list(peak(0.01)) == pytest.approx([0.01 / 3, 0.01, 0.03])


@pytest.mark.parametrize(("at", "wanted"), [(0.03, 0.03), (0.01 / 3, 0.01 / 3), (0.09, 0.09)])
def test_the_search_goes_on_until_the_best_rate_lies_inside(at: float, wanted: float) -> None:
    tried = peak(at)
    assert best(tried) == pytest.approx(wanted)
    assert not at_end(tried)


def test_a_search_that_never_turns_ends_and_says_so() -> None:
    tried = peak(1e6)
    assert len(tried) == MOST
    assert at_end(tried)


def test_each_rate_is_tried_once() -> None:
    asked: list[float] = []
    tune(lambda lr: asked.append(lr) or lr, 0.01)
    assert len(asked) == len(set(asked)) == MOST
