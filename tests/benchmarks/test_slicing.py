"""Networks sliced by importance."""

import pytest
import torch
from controls.slicing import flops, narrowest, sliced
from timm.models.vision_transformer import VisionTransformer
from torch import nn

import networks


def channels(network: nn.Module) -> list[int]:
    return [layer.out_channels for layer in network.modules() if isinstance(layer, nn.Conv2d)]


def test_the_narrowest_network_does_not_cost_less_than_asked() -> None:
    assert narrowest(lambda width: width**2, 0.25) == pytest.approx(0.5)
    assert narrowest(lambda width: width**2, 0.26) == pytest.approx(0.525)
    assert narrowest(lambda width: width**2, 2.0) == 1.0
    assert narrowest(lambda width: 1.0 if width < 0.2 else width**2, 0.25) == pytest.approx(0.5)
    assert narrowest(lambda width: width**2, 0.0) == pytest.approx(0.025)


def test_operations_grow_with_the_pixels() -> None:
    layer = nn.Conv2d(3, 4, 1)
    assert flops(layer, 4) == 2 * 3 * 4 * 16
    assert flops(layer, 8) == 4 * flops(layer, 4)


def test_every_layer_loses_the_same_share_and_the_classes_stay() -> None:
    original = networks.TinyResNet().eval()
    before = channels(original)
    half = sliced(original, 0.5, 32, 5, 4)
    assert channels(half) == [count // 2 for count in before]
    assert half(torch.zeros(2, 3, 32, 32)).shape == (2, 5)
    assert channels(original) == before


def test_the_channels_of_largest_norm_stay() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.Flatten(), nn.Linear(8 * 16, 5)).eval()
    with torch.no_grad():
        network[0].weight[:4] *= 100
        strong = network[0].weight[:4].clone()
    half = sliced(network, 0.5, 4, 5, 1)
    assert torch.equal(half[0].weight, strong)
    assert half(torch.zeros(2, 3, 4, 4)).shape == (2, 5)


def test_attention_loses_channels_and_runs() -> None:
    torch.manual_seed(0)
    network = VisionTransformer(img_size=16, patch_size=4, num_classes=5, embed_dim=32, depth=2, num_heads=2).eval()
    half = sliced(network, 0.5, 16, 5, 4)
    assert half(torch.zeros(2, 3, 16, 16)).shape == (2, 5)
    assert 0.2 < flops(half, 16) / flops(network, 16) < 0.4
    narrow = sliced(network, 0.3, 16, 5, 16)
    assert narrow.blocks[0].attn.head_dim == 4
    assert flops(narrow, 16) < flops(half, 16)
