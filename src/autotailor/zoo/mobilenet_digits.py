"""A small MobileNetV2 for 32x32 images: inverted residuals with depthwise convolutions and ReLU6."""

from typing import cast

import torch
from torch import nn

from autotailor.zoo.layers import check_arguments, conv_bn, scale_channels, seeded

STAGES = ((16, 3, 1), (40, 3, 2), (80, 3, 2))  # output channels, blocks, stride of the first block
STEM = 12
HEAD = 240
EXPANSION = 4
DIVISOR = 4


class InvertedResidual(nn.Module):
    """1x1 expand, 3x3 depthwise, linear 1x1 project; added to the input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        inner = inputs * EXPANSION
        self.expand = conv_bn(inputs, inner, activation=nn.ReLU6())
        self.depthwise = conv_bn(inner, inner, 3, stride, groups=inner, activation=nn.ReLU6())
        self.project = conv_bn(inner, outputs)
        self.has_skip = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, inputs, h, w]`` to ``[n, outputs, h / stride, w / stride]``."""
        y = self.project(self.depthwise(self.expand(x)))
        return cast(torch.Tensor, x + y if self.has_skip else y)


class MobileNetDigits(nn.Module):
    """Stem (3x3, stride 2), three stages of inverted residuals, 1x1 head, global average pooling, classifier."""

    def __init__(self, num_classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        channels = scale_channels(STEM, width, DIVISOR)
        self.stem = conv_bn(3, channels, 3, 2, activation=nn.ReLU6())
        stages: list[nn.Module] = []
        for outputs, blocks, stride in STAGES:
            scaled = scale_channels(outputs, width, DIVISOR)
            stage = []
            for index in range(blocks):
                stage.append(InvertedResidual(channels, scaled, stride if index == 0 else 1))
                channels = scaled
            stages.append(nn.Sequential(*stage))
        self.stages = nn.Sequential(*stages)
        features = scale_channels(HEAD, width, DIVISOR)
        self.head = conv_bn(channels, features, activation=nn.ReLU6())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(features, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[n, 3, h, w]`` to logits ``[n, num_classes]``."""
        return cast(torch.Tensor, self.classifier(self.flatten(self.pool(self.head(self.stages(self.stem(x)))))))


def mobilenet_digits(num_classes: int = 10, width: float = 1.0, seed: int = 0) -> MobileNetDigits:
    """A small MobileNetV2 for the default data, untrained.

    Args:
        num_classes: outputs of the classifier.
        width: factor on every channel count, for the uniformly scaled networks of ``make compare``.
        seed: of the initial weights.

    Raises:
        ZooError: an argument is out of range.
    """
    check_arguments("mobilenet_digits", num_classes, width)
    return seeded(lambda: MobileNetDigits(num_classes, width), seed)
