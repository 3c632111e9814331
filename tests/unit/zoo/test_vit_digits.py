"""The small vision transformer."""

from pathlib import Path

import pytest
import torch

import autotailor
from autotailor import zoo
from autotailor.accuracy.calibration import resolution_of
from autotailor.config import compose

CONF = Path(__file__).parents[3] / "conf"


@pytest.fixture(scope="module")
def net() -> autotailor.SuperNet:
    model = compose(CONF, "vit_digits", "host")["model"]
    return autotailor.compile(model["source"], model["space"], resolution=model["resolution"])


def test_resolution_depth_width_heads_and_ratios_can_change(net: autotailor.SuperNet) -> None:
    assert not net.space.merged
    assert not net.static_parts
    kinds = [variable.kind for variable in net.space]
    assert {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)} == {
        "resolution": 1, "width": 2, "depth": 1, "heads": 4, "expand_ratio": 4,
    }  # fmt: skip
    cost = net.macs().predict([net.largest().to_array(), net.smallest().to_array()])
    assert 5 < cost[0] < 20
    assert cost[1] < 0.1 * cost[0]


def test_the_smallest_subnet_reads_smaller_images(net: autotailor.SuperNet) -> None:
    subnet = net.smallest()
    assert resolution_of(subnet) == 24
    assert net.build(subnet)(torch.zeros(2, 3, 24, 24)).shape == (2, 10)


def test_the_number_of_heads_follows_the_width() -> None:
    assert [zoo.vit_digits(width=width).blocks[0].attn.num_heads for width in (0.5, 1.0, 2.0)] == [2, 4, 8]


def test_linear_layers_start_at_a_scale_at_which_they_learn() -> None:
    weight = zoo.vit_digits().blocks[0].mlp.fc1.weight
    assert weight.std().item() == pytest.approx((2 / sum(weight.shape)) ** 0.5, rel=0.05)
