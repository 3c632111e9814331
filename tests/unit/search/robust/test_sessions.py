"""How far sessions of measuring differ, and how errors add up."""

import math

import numpy as np
import pytest

from autotailor.search.robust.distribution import Variance, total
from autotailor.search.robust.sessions import WORTH, Sessions


def test_before_any_subnet_was_measured_twice_the_usual_noise_counts() -> None:
    found = Sessions(0.015).joined({"a": 1.0, "b": 2.0}).joined({"c": 1.0})
    assert found.variance == Variance(0.015**2, WORTH)


def test_two_sessions_that_share_a_shift_of_all_subnets_count_as_one_degree_of_freedom() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0}
    found = Sessions(0.015).joined(first).joined({name: 1.04 * ms for name, ms in first.items()}).variance
    assert found.degrees == WORTH + 1
    assert found.value == pytest.approx((WORTH * 0.015**2 + math.log(1.04) ** 2 / 2) / (WORTH + 1))


def test_over_many_sessions_the_variance_between_them_is_found_whatever_is_usual() -> None:
    random = np.random.default_rng(0)
    found = Sessions(0.001)
    for shift in random.normal(0, 0.03, 200):
        found = found.joined({"a": math.exp(shift), "b": 2 * math.exp(shift)})
    assert math.sqrt(found.variance.value) == pytest.approx(0.03, rel=0.15)


def test_sessions_that_count_as_alike_stay_so() -> None:
    assert Sessions().joined({"a": 1.0}).joined({"a": 2.0}).variance.value == 0.0


def test_degrees_of_freedom_of_a_sum_are_those_of_its_least_certain_large_part() -> None:
    assert total((Variance(1.0, 5.0), Variance(0.0, 1.0))) == Variance(1.0, 5.0)
    assert total((Variance(1.0, 6.0), Variance(1.0, 6.0))).degrees == pytest.approx(12.0)
    assert total((Variance(1.0), Variance(3.0))) == Variance(4.0, math.inf)
    assert total(()) == Variance(0.0, math.inf)
