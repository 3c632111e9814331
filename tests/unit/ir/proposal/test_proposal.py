"""Variables of a request, and the sizes that they give."""

from __future__ import annotations

import pytest

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from branched_networks import NETWORKS, SIDE


def test_inner_widths_keep_their_proportions() -> None:
    net = autotailor.compile(NETWORKS["inception"](), {"divisor": 4, "blocks": {"Branch": {"expand_ratio": [0.1875]}}},
                             name="inception", resolution=SIDE)  # fmt: skip
    half = net.slice(net.smallest())
    widths = [half.weights[n.inputs[1]].shape[0] for n in half.nodes if n.kind == "Conv"]
    assert widths[1:6] == [16, 12, 32, 4, 16]


def test_more_heads_than_the_weights_hold_are_refused() -> None:
    space = {"blocks": {"TransformerBlock": {"heads": [4, 8]}}}
    with pytest.raises(SpaceError, match="holds weights for heads 4 at most"):
        autotailor.compile(networks.make("transformer"), space, resolution=32)
