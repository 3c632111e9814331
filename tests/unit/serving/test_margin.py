"""What is kept away from deadlines for the time that a call takes beside the engine."""

import numpy as np
import pytest

from autotailor.serving.margin import LARGEST_SHARE, Margin


@pytest.mark.parametrize("seed", range(3))
def test_the_margin_suffices_for_nearly_all_calls_and_not_for_the_longest(seed: int) -> None:
    random, margin, deadline = np.random.default_rng(seed), Margin(), 5.0
    in_time, margins = [], []
    for call in range(20_000):
        beside = 50.0 if call % 1000 == 999 else float(random.lognormal(np.log(0.06), 0.3))
        left = margin.left(deadline)
        margins.append(deadline - left)
        in_time.append(left + beside <= deadline)
        margin.took(left + beside, left)
    settled = slice(2000, None)
    assert np.mean(in_time[settled]) == pytest.approx(0.995, abs=0.002)
    assert np.max(margins[settled]) < 0.5, "fifty milliseconds once in a thousand calls are not waited for"


def test_short_deadlines_keep_most_of_their_time_and_no_deadline_stays_none() -> None:
    margin = Margin(beside_ms=2.0)
    assert margin.left(1.0) == pytest.approx(1 - LARGEST_SHARE)
    assert margin.left(10.0) == pytest.approx(8.0)
    assert margin.left(0.0) == 0.0
    assert margin.left(-1.0) == -1.0
