"""The sandwich: the largest and the smallest SubNet in every step."""

import numpy as np

import autotailor
from sampling_strategies import make


def test_the_sandwich_has_both_ends(resnet_net: autotailor.SuperNet) -> None:
    drawn = make("sandwich", resnet_net, 4).draw(0.0, np.random.default_rng(0))
    assert drawn[:2] == (resnet_net.largest(), resnet_net.smallest())
    assert len(set(drawn)) == 4
