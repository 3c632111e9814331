from typing import Any

import numpy as np
import pytest

from autotailor.exits.config import ExitsConfig
from autotailor.exits.costs import PROPORTION, TABLE, WithExits, by_table, counted, predicted
from autotailor.exits.heads import find_exits, head_operators, initial, operators_of, with_exits
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.supernet import UNFUSED, SuperNet
from autotailor.profiling import LUT, LUTRow
from lut_tables import DEVICE


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


def table(features: Any, energy: bool = True) -> LUT:
    """Latencies that say which operator they belong to, and energies of a thousandth."""
    times = {feature: 1.0 + number for number, feature in enumerate(dict.fromkeys(features))}
    rows = [LUTRow(each, DEVICE.id, ms, 0.0, 9, energy_mj=1e-3 * ms if energy else None) for each, ms in times.items()]
    return LUT(tuple(rows), DEVICE)


def of_space(net: SuperNet) -> list[OperatorFeature]:
    heads = head_operators(net, ExitsConfig(after=("stage1", "block4"), head="full"), UNFUSED)
    return [*net.operators(), *(each.feature for each in heads)]


def test_a_head_costs_what_the_table_says_of_its_operators(net: SuperNet) -> None:
    network, lut = largest(net), table(of_space(net))
    found = by_table(net, {"a": net.largest()}, {"a": network}, lut, UNFUSED)
    known = lut.latencies()
    assert found.source == TABLE
    assert found.costs["a"].heads == tuple(
        sum(known[each.id] for each in operators_of(head, UNFUSED)) for head in network.heads
    )
    assert found.costs["a"].segments == predicted(net, net.largest(), network, known, UNFUSED).segments
    assert found.energy["a"].whole == pytest.approx(1e-3 * found.costs["a"].whole)
    assert found.energy["a"].heads == pytest.approx([1e-3 * each for each in found.costs["a"].heads])


def test_heads_that_a_table_lacks_cost_in_proportion_to_their_macs(net: SuperNet) -> None:
    network = largest(net)
    found = by_table(net, {"a": net.largest()}, {"a": network}, table(net.operators(), energy=False), UNFUSED)
    macs, costs = counted(network), found.costs["a"]
    assert (found.source, found.energy) == (PROPORTION, {})
    assert costs.heads == pytest.approx([each * costs.whole / macs.whole for each in macs.heads])
