import numpy as np
import pytest

from autotailor.exits.answers import Answers, Costs, ExitError, Policy

ANSWERS = Answers(np.array([[0.9, 0.2], [0.4, 0.8], [0.1, 0.1]]), np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]))
COSTS = Costs((1.0, 2.0, 4.0), (0.25, 0.5))


def test_a_picture_leaves_at_the_first_exit_that_is_sure() -> None:
    policy = Policy((0.5, 0.5), 0, 0, 0, 0).on(ANSWERS, COSTS)
    assert policy.leave(ANSWERS.confidence).tolist() == [0, 1, 2]
    assert (policy.accuracy, policy.expected) == (1.0, pytest.approx((1.25 + 3.75 + 7.75) / 3))


def test_an_exit_that_is_not_there_keeps_no_picture_and_costs_nothing() -> None:
    policy = Policy((None, 0.5), 0, 0, 0, 0)
    assert policy.leave(ANSWERS.confidence).tolist() == [2, 1, 2]
    assert policy.paid(ANSWERS, COSTS).tolist() == [7.5, 3.5, 7.5]


def test_costs_of_some_exits_are_those_of_a_network_that_has_these_alone() -> None:
    assert COSTS.only([1]) == Costs((3.0, 4.0), (0.5,))
    assert COSTS.only([]) == Costs((7.0,), ())
    assert ANSWERS.only([1]).right.tolist() == [[0, 0], [1, 0], [0, 1]]


def test_answers_about_other_pictures_are_refused() -> None:
    with pytest.raises(ExitError, match="3 exits are about 2 pictures"):
        Answers(np.zeros((2, 2)), np.zeros((3, 3)))
