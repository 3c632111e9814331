"""What the networks of this package have in common: weights by seed, and refused arguments."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from torch import nn

import autotailor
from autotailor import zoo
from autotailor.zoo.layers import ZooError

CONF = Path(__file__).parents[2] / "conf" / "model"
SMALL = [zoo.resnet_digits, zoo.mobilenet_digits]
FACTORIES = [*SMALL, zoo.vit_digits, zoo.mobilenetv3_ofa, zoo.proxylessnas, zoo.elasticvit]


@pytest.mark.parametrize("factory", FACTORIES)
def test_weights_follow_the_seed_and_nothing_else(factory: Callable[..., nn.Module]) -> None:
    before = torch.get_rng_state()
    first = factory(num_classes=10, seed=3).state_dict().values()
    torch.manual_seed(99)
    again, other = (factory(num_classes=10, seed=s).state_dict().values() for s in (3, 0))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first, other, strict=True))
    torch.set_rng_state(before)
    factory()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_single_class_is_refused(factory: Callable[..., nn.Module]) -> None:
    with pytest.raises(ZooError, match="num_classes"):
        factory(num_classes=1)


@pytest.mark.parametrize("factory", SMALL)
def test_small_networks_read_several_resolutions(factory: Callable[..., nn.Module]) -> None:
    network = factory().eval()
    for size in (16, 24, 32):
        assert network(torch.zeros(2, 3, size, size)).shape == (2, 10)


@pytest.mark.parametrize("factory", SMALL)
def test_width_scales_the_cost_about_quadratically(factory: Callable[..., nn.Module]) -> None:
    sizes = [sum(p.numel() for p in factory(width=w).parameters()) for w in (0.5, 1.0)]
    assert 2.8 < sizes[1] / sizes[0] < 4.2


@pytest.mark.parametrize("factory", SMALL)
@pytest.mark.parametrize("bad", [{"width": 0}, {"width": "wide"}, {"width": float("nan")}], ids=str)
def test_widths_that_make_no_network_are_refused(factory: Callable[..., nn.Module], bad: dict[str, object]) -> None:
    with pytest.raises(ZooError, match="width"):
        factory(**bad)


@pytest.mark.parametrize(("name", "blocks"), [("resnet_digits", 6), ("mobilenet_digits", 9)])
def test_the_configured_space_fits_and_no_choice_collapses(name: str, blocks: int) -> None:
    model = yaml.safe_load((CONF / f"{name}.yaml").read_text().replace("${seed}", "0").replace("${threads}", "1"))
    net = autotailor.compile(model["source"], model["space"], resolution=model["resolution"])
    assert net.num_classes == model["num_classes"]
    assert not net.space.merged
    assert not net.static_parts
    kinds = [variable.kind for variable in net.space]
    assert (kinds.count("expand_ratio"), kinds.count("depth"), kinds.count("width")) == (blocks, 3, 3)
    cost = net.macs().predict([net.largest().to_array(), net.smallest().to_array()])
    assert 5 < cost[0] < 20
    assert cost[1] < 0.1 * cost[0]
