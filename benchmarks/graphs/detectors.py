"""Networks for pictures that return maps: a detector's raw heads, pyramids of features, key points."""

from __future__ import annotations

from itertools import pairwise

import timm
import torch
from torch import nn
from torchvision.models import detection, resnet18, segmentation
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops import Conv2dNormActivation, FeaturePyramidNetwork

from returning import CLASSES

KEYPOINTS = 17


def fcn() -> nn.Module:
    """Torchvision's FCN on ResNet50, whose last stages are dilated: a map, and that of an auxiliary head."""
    return segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=CLASSES, aux_loss=True)


class Heads(nn.Module):
    """What the head of one of torchvision's detectors returns: a row for each anchor."""

    def __init__(self, whole: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = self.head(list(self.backbone(x).values()))
        return found


def ssdlite() -> nn.Module:
    """Torchvision's SSDLite320."""
    return Heads(detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES))


def retinanet() -> nn.Module:
    """Torchvision's RetinaNet on ResNet50, as in its second version (BatchNorm in the backbone, GroupNorm in heads)."""
    return Heads(detection.retinanet_resnet50_fpn_v2(weights=None, weights_backbone=None, num_classes=CLASSES))


def pyramid() -> nn.Module:
    """The backbone of torchvision's FasterRCNN: ResNet50 with frozen norms, and a pyramid of five maps."""
    return resnet_fpn_backbone(backbone_name="resnet50", weights=None)


def keypoints() -> nn.Module:
    """A simple baseline for poses (Xiao 2018): ResNet18, three ConvTranspose, and a heat map of each key point."""
    trunk = list(resnet18(weights=None).children())[:-2]
    widths = (512, 64, 64, 64)
    up = (
        nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        for a, b in pairwise(widths)
    )
    return nn.Sequential(*trunk, *up, nn.Conv2d(widths[-1], KEYPOINTS, 1), nn.Sigmoid())


class Pyramid(nn.Module):
    """Several maps of one of timm's networks, joined by torchvision's pyramid."""

    def __init__(self, name: str, width: int = 64) -> None:
        super().__init__()
        self.body = timm.create_model(name, features_only=True, pretrained=False, out_indices=(1, 2, 3, 4))
        self.neck = FeaturePyramidNetwork(self.body.feature_info.channels(), width)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return list(self.neck({str(n): each for n, each in enumerate(self.body(x))}).values())


def features() -> nn.Module:
    """EfficientNet-B0 of timm as ``features_only``."""
    return Pyramid("efficientnet_b0")


class Weighted(nn.Module):
    """A weighted sum of maps, as EfficientDet has it: weights are positive, and add up to one."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.shares = nn.Parameter(torch.rand(count) + 0.5)
        self.conv = nn.Sequential(
            nn.SiLU(), nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.Conv2d(width, width, 1), nn.BatchNorm2d(width)
        )

    def forward(self, *maps: torch.Tensor) -> torch.Tensor:
        shares = self.shares.relu()
        shares = shares / (shares.sum() + 1e-4)
        found: torch.Tensor = self.conv(sum(share * each for share, each in zip(shares, maps, strict=True)))
        return found


class Layer(nn.Module):
    """One layer of a BiFPN: from the smallest map to the largest, and back."""

    def __init__(self, width: int, levels: int) -> None:
        super().__init__()
        self.up = nn.ModuleList(Weighted(2, width) for _ in range(levels - 1))
        self.down = nn.ModuleList([*(Weighted(3, width) for _ in range(levels - 2)), Weighted(2, width)])

    def forward(self, maps: list[torch.Tensor]) -> list[torch.Tensor]:
        upper = [maps[-1]]
        for join, each in zip(self.up, maps[-2::-1], strict=True):
            upper.insert(0, join(each, nn.functional.interpolate(upper[0], scale_factor=2.0)))
        found = upper[:1]
        for join, given, each in zip(self.down, maps[1:], upper[1:], strict=True):
            smaller = nn.functional.max_pool2d(found[-1], 3, 2, 1)
            found.append(join(given, smaller) if given is each else join(given, each, smaller))
        return found


class BiFPN(nn.Module):
    """An EfficientDet on ResNet18: four maps, two layers of a BiFPN, and heads that all maps share."""

    def __init__(self, width: int = 32, levels: int = 4) -> None:
        super().__init__()
        whole = resnet18(weights=None)
        self.stem = nn.Sequential(whole.conv1, whole.bn1, whole.relu, whole.maxpool, whole.layer1)
        self.stages = nn.ModuleList([whole.layer2, whole.layer3, whole.layer4])
        self.sides = nn.ModuleList(Conv2dNormActivation(w, width, 1, activation_layer=None) for w in (128, 256, 512))
        self.last = Conv2dNormActivation(width, width, 3, 2, activation_layer=None)
        self.layers = nn.ModuleList(Layer(width, levels) for _ in range(2))
        self.scores = nn.Sequential(Conv2dNormActivation(width, width, 3), nn.Conv2d(width, CLASSES, 3, 1, 1))
        self.boxes = nn.Sequential(Conv2dNormActivation(width, width, 3), nn.Conv2d(width, 4, 3, 1, 1))

    def forward(self, x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        x, maps = self.stem(x), []
        for stage, side in zip(self.stages, self.sides, strict=True):
            x = stage(x)
            maps.append(side(x))
        maps.append(self.last(maps[-1]))
        for layer in self.layers:
            maps = layer(maps)
        return {"scores": [self.scores(each) for each in maps], "boxes": [self.boxes(each) for each in maps]}
