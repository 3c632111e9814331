from typing import Any

import numpy as np
import pytest

from autotailor.exits.costs import WithExits, counted, predicted
from autotailor.exits.heads import find_exits, initial, with_exits
from autotailor.ir.supernet import UNFUSED, SuperNet


def largest(net: SuperNet) -> WithExits:
    graph, subnet = net.slice(net.largest()), net.largest()
    places = find_exits(net, subnet, graph, ("stage1", "block4"), "full")
    heads: Any = [initial(place, "full", 5, np.random.default_rng(0)) for place in places]
    return WithExits(with_exits(graph, places, heads), places)


def test_segments_have_the_macs_of_the_network_and_heads_their_own(net: SuperNet) -> None:
    costs = counted(largest(net))
    assert costs.whole == pytest.approx(float(net.macs().predict(net.largest().to_array())[0]))
    channels, side = 32, 16  # of stage1
    assert costs.heads[0] == pytest.approx((9 * channels * channels * (side // 2) ** 2 + channels * 5) / 1e6, rel=0.02)
    assert all(segment > 0 for segment in costs.segments)


def test_predicted_segments_add_up_to_the_predicted_latency(net: SuperNet) -> None:
    random = np.random.default_rng(0)
    table = {feature.id: float(random.random()) for feature in net.operators()}
    costs = predicted(net, net.largest(), largest(net), table, UNFUSED)
    assert costs.whole == pytest.approx(float(net.latency(table, UNFUSED).predict(net.largest().to_array())[0]))
    assert 0 < costs.segments[0] < costs.whole
