"""The share of MACs in elastic operators, against a count by hand over all SubNets."""

import itertools

import numpy as np
import pytest

import autotailor
import networks
from autotailor.ir.metrics.elasticity import elastic_share
from autotailor.ir.supernet import UNFUSED


def by_hand(net: autotailor.SuperNet) -> tuple[float, float, float]:
    """Operators whose MACs differ, or that are missing, in any SubNet at the full resolution."""
    ranges = [[v.default] if v.name == "resolution" else range(len(v.choices)) for v in net.space]
    arrays = np.array(list(itertools.product(*ranges)))
    macs = net.macs()
    largest = net.largest().to_array()[None]
    resized = removed = either = total = 0.0
    for term in macs.terms:
        value = float(term.values(net.space, largest)[0])
        present = type(term)(term.variables, term.table)  # without its gate
        changes = len(set(present.values(net.space, arrays))) > 1
        missing = term.gate is not None
        total, resized, removed = total + value, resized + value * changes, removed + value * missing
        either += value * (changes or missing)
    return resized / total, removed / total, either / total


@pytest.mark.parametrize(
    "space",
    [
        {},
        {"resolution": [16, 32]},
        {"depth": [0, 1]},
        {"blocks": {"block1": {"expand_ratio": [0.25, 0.5]}}},
        {"depth": [0, 1], "width": {"stage2": [0.5, 1.0]}, "resolution": [16, 32], "divisor": 4},
    ],
    ids=str,
)
def test_shares_agree_with_a_count_by_hand(space: dict[str, object]) -> None:
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    share = net.elastic_share()
    assert (share.resized, share.removable, share.elastic) == pytest.approx(by_hand(net))
    assert share == elastic_share(net.macs())


def test_only_what_a_variable_reaches_counts() -> None:
    net = autotailor.compile(
        networks.make("resnet"), {"blocks": {"block2": {"expand_ratio": [0.25, 0.5]}}}, resolution=32
    )
    inside = {node.name for node in net.blocks[1].nodes if node.kind == "Conv"}
    macs = {
        place.label: float(term.table.max()) for place, term in zip(net.places(UNFUSED), net.macs().terms, strict=True)
    }
    expected = sum(macs[name] for name in inside) / sum(macs.values())
    assert net.elastic_share().elastic == net.elastic_share().resized == pytest.approx(expected)
    assert net.elastic_share().removable == 0
