"""The largest MobileNetV3 and ProxylessNAS of Once-for-All: depth 4, kernel 7, expand ratio 6.

Cai et al., *Once for All: Train One Network and Specialize it for Efficient Deployment*, ICLR 2020. Widths, strides,
activations and gates are those of the authors' ``OFAMobileNetV3`` and ``OFAProxylessNASNets`` with width 1.0. Both are
plain networks here; the compiler proposes their spaces.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn

from autotailor.zoo.layers import SqueezeExcitation, check_arguments, conv_bn, scale_channels, seeded

KERNEL = 7
EXPANSION = 6
DIVISOR = 8

Activation = Callable[[], nn.Module]


@dataclass(frozen=True)
class Stage:
    """A sequence of inverted residuals; the first one has the stride."""

    width: int
    stride: int
    blocks: int = 4
    activation: Activation = nn.ReLU6
    gated: bool = False


MOBILENETV3_STAGES = (
    Stage(24, 2, activation=nn.ReLU),
    Stage(40, 2, activation=nn.ReLU, gated=True),
    Stage(80, 2, activation=nn.Hardswish),
    Stage(112, 1, activation=nn.Hardswish, gated=True),
    Stage(160, 2, activation=nn.Hardswish, gated=True),
)
PROXYLESSNAS_STAGES = (
    Stage(24, 2),
    Stage(40, 2),
    Stage(80, 2),
    Stage(96, 1),
    Stage(192, 2),
    Stage(320, 1, blocks=1),
)


class InvertedResidual(nn.Module):
    """1x1 expand, depthwise, gate (where the stage has one), linear 1x1 project; added to x where shapes agree."""

    def __init__(self, inputs: int, stage: Stage, stride: int, epsilon: float) -> None:
        super().__init__()
        inner = inputs * EXPANSION
        squeezed = scale_channels(inner // 4, 1.0, DIVISOR)
        self.expand = conv_bn(inputs, inner, activation=stage.activation(), epsilon=epsilon)
        self.depthwise = conv_bn(inner, inner, KERNEL, stride, inner, stage.activation(), epsilon)
        self.gate = SqueezeExcitation(inner, squeezed) if stage.gated else nn.Identity()
        self.project = conv_bn(inner, stage.width, epsilon=epsilon)
        self.has_skip = stride == 1 and inputs == stage.width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, inputs, h, w]`` to ``[n, width, h / stride, w / stride]``."""
        y = self.project(self.gate(self.depthwise(self.expand(x))))
        return cast(torch.Tensor, x + y if self.has_skip else y)


def inverted_residuals(inputs: int, stages: Sequence[Stage], epsilon: float) -> nn.Sequential:
    """The blocks of all stages, one after another."""
    blocks: list[nn.Module] = []
    for stage in stages:
        for index in range(stage.blocks):
            blocks.append(InvertedResidual(inputs, stage, stage.stride if index == 0 else 1, epsilon))
            inputs = stage.width
    return nn.Sequential(*blocks)


class MobileNetV3OFA(nn.Module):
    """Stem and a separable block of 16 channels, 5 stages of 4 blocks, and MobileNetV3's head after the pooling."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.stem = conv_bn(3, 16, 3, 2, activation=nn.Hardswish())
        self.separable = nn.Sequential(conv_bn(16, 16, 3, 1, 16, nn.ReLU()), conv_bn(16, 16))
        self.blocks = inverted_residuals(16, MOBILENETV3_STAGES, 1e-5)
        self.expand = conv_bn(160, 960, activation=nn.Hardswish())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.mix = nn.Sequential(nn.Conv2d(960, 1280, 1, bias=False), nn.Hardswish())
        self.classifier = nn.Linear(1280, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[n, 3, h, w]`` to logits ``[n, num_classes]``."""
        x = self.stem(x)
        x = self.expand(self.blocks(x + self.separable(x)))
        return cast(torch.Tensor, self.classifier(self.mix(self.pool(x)).flatten(1)))


class ProxylessNASOFA(nn.Module):
    """Stem of 32 channels, a separable block of 16, 5 stages of 4 blocks, one stage of one block, and a 1x1 head."""

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        epsilon = 1e-3
        self.stem = conv_bn(3, 32, 3, 2, activation=nn.ReLU6(), epsilon=epsilon)
        depthwise = conv_bn(32, 32, 3, 1, 32, nn.ReLU6(), epsilon)
        self.separable = nn.Sequential(depthwise, conv_bn(32, 16, epsilon=epsilon))
        self.blocks = inverted_residuals(16, PROXYLESSNAS_STAGES, epsilon)
        self.mix = conv_bn(320, 1280, activation=nn.ReLU6(), epsilon=epsilon)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(1280, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[n, 3, h, w]`` to logits ``[n, num_classes]``."""
        x = self.mix(self.blocks(self.separable(self.stem(x))))
        return cast(torch.Tensor, self.classifier(self.pool(x).flatten(1)))


def mobilenetv3_ofa(num_classes: int = 1000, seed: int = 0) -> MobileNetV3OFA:
    """Once-for-All's largest MobileNetV3, untrained, for images of 224 pixels.

    Args:
        num_classes: outputs of the classifier.
        seed: of the initial weights.

    Raises:
        ZooError: an argument is out of range.
    """
    check_arguments("mobilenetv3_ofa", num_classes)
    return seeded(lambda: MobileNetV3OFA(num_classes), seed)


def proxylessnas(num_classes: int = 1000, seed: int = 0) -> ProxylessNASOFA:
    """Once-for-All's largest ProxylessNAS, untrained, for images of 224 pixels; see ``mobilenetv3_ofa``."""
    check_arguments("proxylessnas", num_classes)
    return seeded(lambda: ProxylessNASOFA(num_classes), seed)
