"""A small bottleneck ResNet for 32x32 images: ResNet50's structure at a hundredth of its cost."""

from pathlib import Path
from typing import cast

import torch
from safetensors.torch import load_file
from torch import nn

from autotailor.zoo.layers import check_arguments, conv_bn, scale_channels, seeded

STAGES = ((64, 2, 1), (128, 2, 2), (256, 2, 2))  # output channels, blocks, stride of the first block
STEM = 32
REDUCTION = 4  # a bottleneck's inner width is its output width / REDUCTION
DIVISOR = 4


class Bottleneck(nn.Module):
    """1x1 reduce, 3x3, 1x1 expand, added to the (projected) input, then ReLU."""

    def __init__(self, inputs: int, outputs: int, inner: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv_bn(inputs, inner, activation=nn.ReLU())
        self.conv2 = conv_bn(inner, inner, 3, stride, activation=nn.ReLU())
        self.conv3 = conv_bn(inner, outputs)
        self.downsample = conv_bn(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, inputs, h, w]`` to ``[n, outputs, h / stride, w / stride]``."""
        y = self.conv3(self.conv2(self.conv1(x)))
        return cast(torch.Tensor, self.act(y + self.downsample(x)))


class ResNetDigits(nn.Module):
    """Stem (3x3, stride 2), three stages of bottlenecks, global average pooling, classifier."""

    def __init__(self, num_classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        channels = scale_channels(STEM, width, DIVISOR)
        self.stem = conv_bn(3, channels, 3, 2, activation=nn.ReLU())
        stages: list[nn.Module] = []
        for outputs, blocks, stride in STAGES:
            scaled = scale_channels(outputs, width, DIVISOR)
            inner = scale_channels(scaled // REDUCTION, 1.0, DIVISOR)
            stage = []
            for index in range(blocks):
                stage.append(Bottleneck(channels, scaled, inner, stride if index == 0 else 1))
                channels = scaled
            stages.append(nn.Sequential(*stage))
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[n, 3, h, w]`` to logits ``[n, num_classes]``."""
        return cast(torch.Tensor, self.classifier(self.flatten(self.pool(self.stages(self.stem(x))))))


def resnet_digits(num_classes: int = 10, width: float = 1.0, seed: int = 0) -> ResNetDigits:
    """The ResNet of the default configuration, untrained.

    Args:
        num_classes: outputs of the classifier.
        width: factor on every channel count, for the uniformly scaled networks of ``make compare``.
        seed: of the initial weights.

    Raises:
        ZooError: an argument is out of range.
    """
    check_arguments("resnet_digits", num_classes, width)
    return seeded(lambda: ResNetDigits(num_classes, width), seed)


def trained_resnet_digits() -> ResNetDigits:
    """The same ResNet as a trained network arrives: with weights that lie beside this file.

    The rule ``pretrain`` of ``model=resnet_digits`` has made the weights, with the seed 0.
    """
    network = resnet_digits()
    network.load_state_dict(load_file(Path(__file__).with_suffix(".safetensors")))
    return network
