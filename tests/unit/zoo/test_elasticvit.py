"""ElasticViT, which timm lacks: its attention against timm's with the same weights, and its published stages."""

import pytest
import torch
from timm.models.levit import Attention as LevitAttention
from torch import nn

from autotailor import zoo
from autotailor.zoo.elasticvit import Attention
from autotailor.zoo.layers import ZooError


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


@pytest.mark.parametrize("resolution", [16, 224.0, True])
def test_elasticvit_needs_a_resolution(resolution: object) -> None:
    with pytest.raises(ZooError, match="resolution"):
        zoo.elasticvit(resolution=resolution)
