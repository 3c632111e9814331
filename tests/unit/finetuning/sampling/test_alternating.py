"""Alternating: the largest SubNet in every second step."""

import numpy as np

import autotailor
from sampling_strategies import make


def test_alternating_draws_the_largest_in_every_second_step_and_the_smallest_always(
    resnet_net: autotailor.SuperNet,
) -> None:
    strategy = make("alternating", resnet_net, 2)
    drawn = [strategy.draw(0.0, np.random.default_rng(step)) for step in range(200)]
    assert all(len(subnets) == 2 and subnets[1] == resnet_net.smallest() for subnets in drawn)
    first = [subnets[0] for subnets in drawn]
    assert 70 < sum(subnet == resnet_net.largest() for subnet in first) < 140  # what lies between may be the largest
    assert len(set(first)) > 50
