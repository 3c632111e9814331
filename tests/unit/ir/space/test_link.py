"""Links of metrics."""

import numpy as np
import pytest

from autotailor.ir.space.link import IDENTITY, LOGIT, Link, link_of, logit_above, points_of_log_odds, power_law, turned


@pytest.mark.parametrize("link", [IDENTITY, LOGIT, logit_above(10.0)], ids=lambda link: link.name)
def test_a_link_rises_strictly_and_its_inverse_takes_it_back(link: Link) -> None:
    linear = np.linspace(-12.0, 12.0, 101)
    values = link.value(linear)
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose(link.linear(values), linear, atol=1e-9)


def test_a_power_law_rises_strictly_above_0_and_its_inverse_takes_it_back() -> None:
    link, sums = power_law(1.2, 1.1), np.linspace(0.0, 300.0, 101)
    assert (np.diff(link.value(sums)) > 0).all()
    np.testing.assert_allclose(link.linear(link.value(sums)), sums, atol=1e-9)
    np.testing.assert_allclose(link.value(np.array([-1.0, 0.0, 1.0, 2.0])), [0.0, 0.0, 1.2, 1.2 * 2**1.1])


@pytest.mark.parametrize("link", [IDENTITY, logit_above(10.0), power_law(1.2, 1.1)], ids=lambda link: link.name)
def test_a_turned_link_takes_minus_the_sum_to_minus_the_value(link: Link) -> None:
    sums, other = np.linspace(0.1, 12.0, 101), turned(link)
    np.testing.assert_allclose(other.value(-sums), -link.value(sums))
    np.testing.assert_allclose(other.linear(other.value(-sums)), -sums, atol=1e-9)
    assert other.ends == tuple(-end for end in reversed(link.ends))


def test_the_logit_link_gives_percent_and_stays_within_0_and_100() -> None:
    np.testing.assert_allclose(LOGIT.value(np.array([np.log(9.0), 0.0])), [90.0, 50.0])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(LOGIT.value(np.array([-1e4, 1e4])), [0.0, 100.0])


def test_above_a_floor_the_logit_link_ends_where_guessing_does() -> None:
    link = logit_above(10.0)
    np.testing.assert_allclose(link.value(np.array([-1e4, 0.0, 1e4])), [10.0, 55.0, 100.0])
    assert logit_above(0.0) is LOGIT
    linear = np.array([-2.0, 0.5])
    slope = (link.value(linear + 1e-5) - link.value(linear - 1e-5)) / 2e-5
    np.testing.assert_allclose(points_of_log_odds(link.value(linear), 10.0), slope, rtol=1e-6)


@pytest.mark.parametrize("link", [IDENTITY, LOGIT, logit_above(1 / 3)], ids=lambda link: link.name)
def test_a_link_is_found_by_its_name(link: Link) -> None:
    assert link_of(link.name) is link
