"""Torchvision's SSDLite320 and RetinaNet as a person's project has them: heads behind a factory, and a checkpoint.

This file is copied into the project as a module of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torchvision.models import detection

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
    """RetinaNet on ResNet50, with the frozen norms that its weights come with."""
    return detection.retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=CLASSES, norm_layer=None, trainable_backbone_layers=5
    )


def ssdlite() -> nn.Module:
    """The network of the project."""
    return Raw(whole_ssdlite())


def retinanet() -> nn.Module:
    """The network of the project."""
    return Raw(whole_retinanet())


def train(whole: Any, folder: Path, side: int, epochs: int) -> nn.Module:
    """The heads of a detector trained for some epochs with torchvision's own loss."""
    import boxed
    from autotailor import data

    section = {**boxed.SECTION, "root": str(folder), "resolution": side, "crop": 0, "scale": [0.6, 1.0], "flip": False}
    stream = data.load({**section, "decode": "autotailor.task.decoders.anchors:ssdlite320"}).train
    whole.transform = _Plain()
    optimizer = torch.optim.AdamW(whole.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=epochs * stream.num_batches(16))
    for epoch in range(epochs):
        for images, boxes in stream.batches(epoch, 16):
            targets = [
                {"boxes": each[:, :4][each[:, 4] >= 0] * side, "labels": each[:, 4][each[:, 4] >= 0].long() + 1}
                for each in boxes
            ]
            optimizer.zero_grad()
            sum(whole(list(images), targets).values()).backward()
            nn.utils.clip_grad_norm_(whole.parameters(), 5.0)
            optimizer.step()
            schedule.step()
    return Raw(whole.eval())


class _Plain(nn.Module):
    """Images as they are, because the data have scaled them."""

    def forward(self, images: list[torch.Tensor], targets: Any = None) -> tuple[Any, Any]:
        from torchvision.models.detection.image_list import ImageList

        stacked = torch.stack(images)
        return ImageList(stacked, [(stacked.shape[2], stacked.shape[3])] * len(images)), targets
