from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml
from torch import nn

import autotailor
from autotailor import zoo
from autotailor.zoo.layers import ZooError

CONF = Path(__file__).parents[3] / "conf" / "model"
FACTORIES = [zoo.resnet_digits, zoo.mobilenet_digits]


@pytest.mark.parametrize("factory", FACTORIES)
class TestFactory:
    def test_it_reads_several_resolutions(self, factory: type) -> None:
        network = factory().eval()
        for size in (16, 24, 32):
            assert network(torch.zeros(2, 3, size, size)).shape == (2, 10)

    def test_weights_follow_the_seed_and_nothing_else(self, factory: type) -> None:
        before = torch.get_rng_state()
        first = factory(seed=3).state_dict()
        torch.manual_seed(99)
        assert all(
            torch.equal(a, b) for a, b in zip(first.values(), factory(seed=3).state_dict().values(), strict=True)
        )
        assert any(not torch.equal(a, b) for a, b in zip(first.values(), factory().state_dict().values(), strict=True))
        torch.set_rng_state(before)
        factory()
        assert torch.equal(before, torch.get_rng_state())

    def test_width_scales_the_cost_about_quadratically(self, factory: type) -> None:
        sizes = [sum(p.numel() for p in factory(width=w).parameters()) for w in (0.5, 1.0)]
        assert 2.8 < sizes[1] / sizes[0] < 4.2

    @pytest.mark.parametrize(
        "bad", [{"width": 0}, {"width": "wide"}, {"width": float("nan")}, {"num_classes": 1}], ids=str
    )
    def test_arguments_that_make_no_network_are_refused(self, factory: type, bad: dict[str, object]) -> None:
        with pytest.raises(ZooError, match=next(iter(bad))):
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


def test_some_inverted_residuals_have_no_skip() -> None:
    blocks = [m for m in zoo.mobilenet_digits().modules() if hasattr(m, "has_skip")]
    assert {block.has_skip for block in blocks} == {True, False}
    assert any(isinstance(m, nn.Conv2d) and m.groups > 1 for m in zoo.mobilenet_digits().modules())
