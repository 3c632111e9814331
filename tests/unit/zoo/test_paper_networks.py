"""The networks of the paper that timm lacks, against timm's own building blocks with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from timm.models._efficientnet_blocks import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def, round_channels
from timm.models.efficientnet import EfficientNet
from timm.models.levit import Attention as LevitAttention
from timm.models.mobilenetv3 import MobileNetV3
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autotailor import zoo
from autotailor.zoo.elasticvit import Attention
from autotailor.zoo.layers import ZooError

FACTORIES = [zoo.mobilenetv3_ofa, zoo.proxylessnas, zoo.elasticvit]


def timm_mobilenetv3() -> nn.Module:
    blocks = [
        ["ds_r1_k3_s1_e1_c16_nre"], ["ir_r4_k7_s2_e6_c24_nre"], ["ir_r4_k7_s2_e6_c40_se0.25_nre"],
        ["ir_r4_k7_s2_e6_c80"], ["ir_r4_k7_s1_e6_c112_se0.25"], ["ir_r4_k7_s2_e6_c160_se0.25"], ["cn_r1_k1_s1_c960"],
    ]  # fmt: skip
    gate = partial(SqueezeExcite, gate_layer="hard_sigmoid", force_act_layer=nn.ReLU, rd_round_fn=round_channels)
    return MobileNetV3(
        decode_arch_def(blocks), stem_size=16, num_features=1280, head_bias=False, act_layer=nn.Hardswish, se_layer=gate
    )


def timm_proxylessnas() -> nn.Module:
    blocks = [
        ["ds_r1_k3_s1_e1_c16"], ["ir_r4_k7_s2_e6_c24"], ["ir_r4_k7_s2_e6_c40"], ["ir_r4_k7_s2_e6_c80"],
        ["ir_r4_k7_s1_e6_c96"], ["ir_r4_k7_s2_e6_c192"], ["ir_r1_k7_s1_e6_c320"],
    ]  # fmt: skip
    norm = partial(nn.BatchNorm2d, eps=1e-3)
    return EfficientNet(decode_arch_def(blocks), stem_size=32, num_features=1280, act_layer=nn.ReLU6, norm_layer=norm)


@pytest.mark.parametrize(
    ("factory", "reference", "parameters", "macs"),
    [(zoo.mobilenetv3_ofa, timm_mobilenetv3, 7.66, 566), (zoo.proxylessnas, timm_proxylessnas, 5.10, 607)],
    ids=["mobilenetv3", "proxylessnas"],
)
def test_once_for_all(
    factory: Callable[[], nn.Module], reference: Callable[[], nn.Module], parameters: float, macs: float
) -> None:
    """The published supernet of MobileNetV3 has 7.6 million parameters (mmrazor's model zoo)."""
    network, other = factory().eval(), reference().eval()
    state = other.state_dict()
    other.load_state_dict(dict(zip(state, network.state_dict().values(), strict=True)))
    x = torch.randn(1, 3, 224, 224)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        y = network(x)
    with torch.no_grad():
        assert torch.allclose(y, other(x), rtol=1e-4, atol=1e-4 * float(y.abs().max()))
    assert sum(p.numel() for p in network.parameters()) / 1e6 == pytest.approx(parameters, abs=0.01)
    assert counter.get_total_flops() / 2e6 == pytest.approx(macs, abs=1)


def test_attention_is_that_of_levit() -> None:
    """Where the convolution of the values does nothing, and timm's BatchNorms do nothing."""
    torch.manual_seed(0)
    ours, theirs = Attention(96, 5), LevitAttention(96, 16, 6, 4.0, 5, act_layer=nn.Hardswish)
    theirs.train(False)
    with torch.no_grad():
        nn.init.zeros_(ours.local.weight)[:, :, 1, 1] = 1.0
        nn.init.normal_(ours.biases)
        theirs.attention_biases.copy_(ours.biases)
        theirs.qkv.linear.weight.copy_(ours.qkv.weight)
        theirs.proj.ln.linear.weight.copy_(ours.proj.weight)
        for norm in (theirs.qkv.bn, theirs.proj.ln.bn):
            nn.init.ones_(norm.weight)
            norm.eps = 0.0
        x = torch.randn(2, 25, 96)
        assert torch.allclose(ours(x) - ours.proj.bias, theirs(x), atol=1e-5)


def test_elasticvit_has_the_published_stages() -> None:
    network = zoo.elasticvit(resolution=64)
    blocks = [type(m).__name__ for m in network.modules()]
    assert blocks.count("TransformerBlock") == 5 + 6 + 6 + 6
    assert blocks.count("InvertedResidual") == 2 + 5 + 6 + 4  # the last: one for each transformer stage
    assert [(s.map[0], s.map[1], s.blocks[0].attention.heads) for s in network.transformer] == [
        (96, 4, 6), (160, 4, 10), (288, 2, 18), (320, 1, 20)
    ]  # fmt: skip
    assert network.transformer[0].blocks[0].attention.split == (16, 16, 64)


@pytest.mark.parametrize("factory", FACTORIES)
def test_weights_follow_the_seed_and_nothing_else(factory: Callable[..., nn.Module]) -> None:
    before = torch.get_rng_state()
    first, again, other = (factory(num_classes=10, seed=s).state_dict().values() for s in (3, 3, 0))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first, other, strict=True))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("factory", FACTORIES)
def test_arguments_that_make_no_network_are_refused(factory: Callable[..., nn.Module]) -> None:
    with pytest.raises(ZooError, match="num_classes"):
        factory(num_classes=1)


@pytest.mark.parametrize("resolution", [16, 224.0, True])
def test_elasticvit_needs_a_resolution(resolution: object) -> None:
    with pytest.raises(ZooError, match="resolution"):
        zoo.elasticvit(resolution=resolution)
