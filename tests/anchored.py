"""Torchvision's SSDLite320 and RetinaNet as a person's project has them: heads behind a factory, and a checkpoint.

This file is copied into the project as a module of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchvision.models import detection
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops.feature_pyramid_network import LastLevelP6P7

CLASSES = 4
"""Those of the data, and the background."""


class Raw(nn.Module):
    """The raw heads of one of torchvision's detectors."""

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = self.head(list(self.backbone(x).values()))
        return found


def whole_ssdlite() -> Any:
    """SSDLite320 as torchvision trains it."""
    return detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)


def whole_retinanet() -> Any:
    """RetinaNet on ResNet18, with the frozen norms that torchvision's weights come with."""
    extra = LastLevelP6P7(256, 256)
    pyramid = resnet_fpn_backbone(backbone_name="resnet18", weights=None, returned_layers=[2, 3, 4], extra_blocks=extra)
    return detection.RetinaNet(pyramid, CLASSES)


def ssdlite() -> nn.Module:
    """The network of the project."""
    return Raw(whole_ssdlite())


def retinanet() -> nn.Module:
    """The network of the project."""
    return Raw(whole_retinanet())
