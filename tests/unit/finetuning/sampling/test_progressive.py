"""Progressive shrinking: one kind of modification after another."""

from collections import Counter

import numpy as np

import autotailor
from sampling_strategies import make


def test_progressive_opens_kinds_one_after_another(resnet_net: autotailor.SuperNet) -> None:
    strategy = make("progressive", resnet_net, 60)

    def changed(progress: float) -> Counter[str]:
        drawn = strategy.draw(progress, np.random.default_rng(0))
        return Counter(m.variable.rsplit(".")[-1] for subnet in drawn for m in subnet.modifications)

    assert set(changed(0.0)) == {"resolution"}
    assert set(changed(0.29)) == {"resolution", "depth"}
    assert set(changed(0.59)) == {"resolution", "depth", "expand_ratio"}
    assert set(changed(1.0)) == {"resolution", "depth", "expand_ratio", "width"}
