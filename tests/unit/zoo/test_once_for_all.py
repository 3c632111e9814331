"""MobileNetV3 and ProxylessNAS, which timm lacks, against timm's own building blocks with the same weights."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from timm.models._efficientnet_blocks import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def, round_channels
from timm.models.efficientnet import EfficientNet
from timm.models.mobilenetv3 import MobileNetV3
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autotailor import zoo


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
