"""Links of metrics."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.ir.space.link import IDENTITY, LOGIT, Link


@pytest.mark.parametrize("link", [IDENTITY, LOGIT], ids=lambda link: link.name)
def test_a_link_rises_strictly_and_its_inverse_takes_it_back(link: Link) -> None:
    linear = np.linspace(-12.0, 12.0, 101)
    values = link.value(linear)
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose(link.linear(values), linear, atol=1e-9)


def test_the_logit_link_gives_percent_and_stays_within_0_and_100() -> None:
    np.testing.assert_allclose(LOGIT.value(np.array([np.log(9.0), 0.0])), [90.0, 50.0])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(LOGIT.value(np.array([-1e4, 1e4])), [0.0, 100.0])
