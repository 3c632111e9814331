"""The strategy for SubNets that are known before the training."""

from __future__ import annotations

from collections import Counter

import numpy as np

import autotailor
from autotailor.finetuning.joint.listed import Listed
from autotailor.ir.space.subnet import sample_distinct


def test_a_quarter_is_the_largest_and_the_others_of_the_list_share_the_rest(plain_net: autotailor.SuperNet) -> None:
    (other,) = sample_distinct(plain_net.space, 1, np.random.default_rng(3))
    listed = (plain_net.smallest(), other)
    strategy, random = Listed(listed, 2), np.random.default_rng(0)
    drawn = Counter(subnet for _ in range(600) for subnet in strategy.step(0.5, random))
    expected = {plain_net.largest(): 0.25, plain_net.smallest(): 0.375, other: 0.375}
    assert drawn.keys() == expected.keys()
    for subnet, share in expected.items():
        assert abs(drawn[subnet] - 1200 * share) < 4 * np.sqrt(1200 * share * (1 - share))


def test_another_list_is_another_training(plain_net: autotailor.SuperNet) -> None:
    one, other = (Listed([subnet], 1).identity for subnet in (plain_net.largest(), plain_net.smallest()))
    assert one != other
