"""The largest network of ElasticViT, which the paper calls LeViT.

Tang et al., *ElasticViT: Conflict-aware Supernet Training for Deploying Fast Vision Transformer on Diverse Mobile
Devices*, ICCV 2023. The network has a stem, 2 stages of inverted residuals and 4 stages of transformer blocks, with the
largest depths, widths, kernels, expand ratios, V scales and MLP ratios of the authors' published space. The attention
is that of LeViT (Graham et al., ICCV 2021): one projection gives queries, keys and values of each head side by side,
values are wider than keys, each distance between two positions of the map has a learned bias, and an activation comes
before the output projection. As in ElasticViT, values pass a depthwise 3x3 convolution, and a stage begins with an
inverted residual that changes width and resolution.

Two things are simpler than in the authors' code: LayerNorm normalises each token separately, and distances are LeViT's
(|dy|, |dx|) instead of Swin's signed ones.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import nn

from autotailor.zoo.layers import SqueezeExcitation, ZooError, check_arguments, conv_bn, seeded

STEM = (24, 2)  # channels, separable blocks
CONVOLUTIONAL = ((32, 5, False), (48, 6, True))  # channels, blocks, gated; each stage halves the map
TRANSFORMER = ((96, 5, 2), (160, 6, 1), (288, 6, 2), (320, 6, 2))  # channels, blocks, stride
KERNEL = 5
EXPANSION = 6
HEAD_WIDTH = 16
VALUE_SCALE = 4
MLP_RATIO = 5
FEATURES = (1920, 1984)
RESOLUTION = 256


class InvertedResidual(nn.Module):
    """1x1 expand, depthwise, gate, linear 1x1 project, added to x.

    Where the map shrinks, x is averaged over 2x2; where the width changes, x passes a 1x1 convolution.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, gated: bool = False, expansion: int = EXPANSION
    ) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = conv_bn(inputs, inner, activation=nn.Hardswish()) if expansion > 1 else nn.Identity()
        self.depthwise = conv_bn(inner, inner, kernel, stride, inner, nn.Hardswish())
        self.gate = SqueezeExcitation(inner, inner // 4) if gated else nn.Identity()
        self.project = conv_bn(inner, outputs)
        shrink = nn.AvgPool2d(2, stride, ceil_mode=True, count_include_pad=False) if stride > 1 else nn.Identity()
        widen = nn.Conv2d(inputs, outputs, 1, bias=False) if inputs != outputs else nn.Identity()
        self.shortcut = nn.Sequential(shrink, widen)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, inputs, h, w]`` to ``[n, outputs, ceil(h / stride), ceil(w / stride)]``."""
        y = self.project(self.gate(self.depthwise(self.expand(x))))
        return cast(torch.Tensor, y + self.shortcut(x))


class Attention(nn.Module):
    """LeViT's attention over the positions of a map of ``side`` x ``side``, with a depthwise 3x3 on the values."""

    offsets: torch.Tensor

    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.heads = width // HEAD_WIDTH
        self.split = (HEAD_WIDTH, HEAD_WIDTH, VALUE_SCALE * HEAD_WIDTH)  # of one head: query, key, value
        values = VALUE_SCALE * width
        self.qkv = nn.Linear(width, 2 * width + values, bias=False)
        self.local = nn.Conv2d(values, values, 3, padding=1, groups=values, bias=False)
        self.proj = nn.Linear(values, width)
        self.biases = nn.Parameter(torch.empty(self.heads, side * side))
        nn.init.trunc_normal_(self.biases, std=0.02)
        self.register_buffer("offsets", _offsets(side), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens ``[n, side * side, width]`` to the same shape."""
        heads, side = self.heads, self.side
        q, k, v = self.qkv(x).reshape(-1, side * side, heads, sum(self.split)).split(self.split, dim=3)
        v = v.reshape(-1, side * side, heads * self.split[2]).transpose(1, 2)
        v = self.local(v.reshape(-1, heads * self.split[2], side, side))
        v = v.reshape(-1, heads, self.split[2], side * side).transpose(2, 3)
        scores = q.transpose(1, 2) @ k.permute(0, 2, 3, 1) * HEAD_WIDTH**-0.5 + self.biases[:, self.offsets]
        mixed = (scores.softmax(dim=-1) @ v).transpose(1, 2)
        mixed = mixed.reshape(-1, side * side, heads * self.split[2])
        return cast(torch.Tensor, self.proj(F.hardswish(mixed)))


def _offsets(side: int) -> torch.Tensor:
    """Index of (|dy|, |dx|) for each pair of positions of a map: ``[side * side, side * side]``."""
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side))
    distance = (places[:, None] - places[None, :]).abs()
    return distance[..., 0] * side + distance[..., 1]


class TransformerBlock(nn.Module):
    """x + attention(LayerNorm(x)), then x + MLP(LayerNorm(x))."""

    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, side)
        self.mlp = nn.Sequential(
            nn.Linear(width, MLP_RATIO * width), nn.Hardswish(), nn.Linear(MLP_RATIO * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens ``[n, positions, width]`` to the same shape."""
        x = x + self.attention(self.norm1(x))
        return cast(torch.Tensor, x + self.mlp(self.norm2(x)))


class TransformerStage(nn.Module):
    """A gated inverted residual that changes width and resolution, then transformer blocks over the map's positions."""

    def __init__(self, inputs: int, outputs: int, blocks: int, stride: int, side: int) -> None:
        super().__init__()
        self.map = (outputs, side, side)
        self.reduction = InvertedResidual(inputs, outputs, 3, stride, gated=True)
        self.blocks = nn.Sequential(*(TransformerBlock(outputs, side) for _ in range(blocks)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, inputs, h, w]`` to ``[n, outputs, side, side]``."""
        width, height, _ = self.map
        tokens = self.reduction(x).reshape(-1, width, height * height).transpose(1, 2)
        return cast(torch.Tensor, self.blocks(tokens).transpose(1, 2).reshape(-1, *self.map))


class ElasticViT(nn.Module):
    """Stem, convolutional and transformer stages, a head of two hidden layers around the pooling."""

    def __init__(self, num_classes: int = 1000, resolution: int = RESOLUTION) -> None:
        super().__init__()
        self.default_cfg = {"input_size": (3, resolution, resolution)}  # timm's networks tell their input size here
        channels, separable = STEM
        self.stem = conv_bn(3, channels, 3, 2, activation=nn.Hardswish())
        blocks: list[nn.Module] = [InvertedResidual(channels, channels, KERNEL, expansion=1) for _ in range(separable)]
        side = _halved(resolution)
        for width, depth, gated in CONVOLUTIONAL:
            for index in range(depth):
                blocks.append(InvertedResidual(channels, width, KERNEL, 1 if index else 2, gated))
                channels = width
            side = _halved(side)
        self.convolutional = nn.Sequential(*blocks)
        stages: list[nn.Module] = []
        for width, depth, stride in TRANSFORMER:
            side = _halved(side) if stride > 1 else side
            stages.append(TransformerStage(channels, width, depth, stride, side))
            channels = width
        self.transformer = nn.Sequential(*stages)
        self.head = conv_bn(channels, FEATURES[0], activation=nn.Hardswish())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.features = nn.Sequential(nn.Linear(*FEATURES), nn.Hardswish())
        self.classifier = nn.Linear(FEATURES[1], num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[n, 3, resolution, resolution]`` to logits ``[n, num_classes]``."""
        x = self.pool(self.head(self.transformer(self.convolutional(self.stem(x))))).flatten(1)
        return cast(torch.Tensor, self.classifier(self.features(x)))


def _halved(side: int) -> int:
    """Side of a map after a stride of 2."""
    return -(-side // 2)


def elasticvit(num_classes: int = 1000, resolution: int = RESOLUTION, seed: int = 0) -> ElasticViT:
    """ElasticViT's largest network, untrained.

    Args:
        num_classes: outputs of the classifier.
        resolution: side of the images in pixels; the tables of attention biases depend on it.
        seed: of the initial weights.

    Raises:
        ZooError: an argument is out of range.
    """
    check_arguments("elasticvit", num_classes)
    if isinstance(resolution, bool) or not isinstance(resolution, int) or resolution < 33:
        raise ZooError(f"elasticvit: resolution must be an integer of at least 33 pixels, not {resolution!r}")
    return seeded(lambda: ElasticViT(num_classes, resolution), seed)
