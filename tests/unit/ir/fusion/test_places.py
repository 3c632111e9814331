"""Fused operators of a space, against brute force over all SubNets."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import autotailor
from acceptance import checks
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space import joint_sizes
from autotailor.ir.space.subnet import stack
from branched_networks import NETWORKS, SIDE
from conv_fusion import CONV_RULES

FUSION = FusionRules("test", folds=frozenset({("Conv", "BatchNormalization")}), fuses=frozenset({("Conv", "Relu")}))


@pytest.mark.parametrize("limit", [1, joint_sizes.TABLE_LIMIT])
def test_operators_of_a_dense_network_are_those_of_brute_force(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_sizes, "TABLE_LIMIT", limit)
    space = {"resolution": [8, 16], "blocks": {"Branch": {"width": [0.5, 1.0], "expand_ratio": [1.0, 2.0]}}}
    net = autotailor.compile(NETWORKS["dense"](), space, name="dense", resolution=SIDE)
    assert sum(v.kind == "width" for v in net.space) == 5
    assert any(p.derived is not None for p in net.places(FUSION)) == (limit == 1)
    choices = [range(len(v.choices)) for v in net.space]
    every = [autotailor.SubNet(net.space, row) for row in itertools.product(*choices)]
    assert {f for s in every for f in net.operators(s, FUSION)} == set(net.operators(fusion=FUSION))
    some = random.Random(0).sample(every, 12)
    for subnet in some:
        standalone = autotailor.SuperNet.of(net.slice(subnet), {})
        assert set(net.operators(subnet, FUSION)) == set(standalone.operators(fusion=FUSION))
    built = [sum(p.numel() for p in net.build(s).parameters()) for s in some]
    assert net.parameters().predict(stack(some)) * 1e6 == pytest.approx(np.array(built))


def test_operators_of_the_space_are_those_of_its_subnets(any_net: autotailor.SuperNet) -> None:
    """Against brute force: operators read off the sliced graphs of all SubNets (or a sample of them)."""
    found = set(any_net.operators(fusion=CONV_RULES))
    rng = random.Random(2)
    seen: set[object] = set()
    for _ in range(3000):
        seen.update(any_net.operators(any_net.sample(rng), CONV_RULES))
        if seen == found:
            break
    assert seen == found


def test_a_subnets_operators_are_those_of_its_sliced_graph(any_net: autotailor.SuperNet) -> None:
    for subnet in checks.subnets(any_net, 4):
        graph = any_net.slice(subnet)
        standalone = autotailor.SuperNet.of(graph, {})
        assert set(any_net.operators(subnet, CONV_RULES)) == set(standalone.operators(fusion=CONV_RULES))
