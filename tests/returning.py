"""Networks that return maps, or several tensors: segmentation, a detector's raw heads, and a U-Net; random weights."""

from collections.abc import Callable

import torch
from torch import nn
from torchvision.models import detection, segmentation
from torchvision.ops import Conv2dNormActivation

CLASSES = 5


def lraspp() -> nn.Module:
    """Torchvision's LRASPP MobileNetV3: one map, summed up from two resolutions."""
    return segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)


def deeplab() -> nn.Module:
    """Torchvision's DeepLabV3 MobileNetV3 with an auxiliary head: two maps."""
    return segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=CLASSES, aux_loss=True
    )


class Heads(nn.Module):
    """The raw heads of torchvision's SSDLite: scores of classes and offsets of boxes for six maps."""

    def __init__(self) -> None:
        super().__init__()
        whole = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        maps = list(self.backbone(x).values())
        heads = {"scores": self.head.classification_head, "boxes": self.head.regression_head}
        return {
            name: [part(each) for part, each in zip(head.module_list, maps, strict=True)]
            for name, head in heads.items()
        }


def twice(before: int, after: int) -> nn.Module:
    """Two convolutions with BatchNorm and ReLU."""
    return nn.Sequential(Conv2dNormActivation(before, after, 3), Conv2dNormActivation(after, after, 3))


class UNet(nn.Module):
    """A small U-Net, whose decoder goes up with ConvTranspose and reads the encoder's maps."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64)) -> None:
        super().__init__()
        self.down = nn.ModuleList(twice(a, b) for a, b in zip((3, *widths[:-1]), widths, strict=True))
        self.middle = twice(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in reversed(widths))
        self.joined = nn.ModuleList(twice(2 * width, width) for width in reversed(widths))
        self.last = nn.Conv2d(widths[0], CLASSES, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for stage in self.down:
            skips.append(stage(x))
            x = nn.functional.max_pool2d(skips[-1], 2)
        x = self.middle(x)
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat([skips.pop(), up(x)], 1))
        return self.last(x)


def convolution(before: int, after: int, kernel: int = 1, stride: int = 1) -> nn.Module:
    """A convolution as YOLO has it, with SiLU."""
    return Conv2dNormActivation(before, after, kernel, stride, activation_layer=nn.SiLU)


class Split(nn.Module):
    """YOLO's C2f: residual pairs of convolutions on one half of the channels, all joined at the end."""

    def __init__(self, before: int, after: int, count: int = 1, residual: bool = True) -> None:
        super().__init__()
        half, self.residual = after // 2, residual
        self.first, self.last = convolution(before, after), convolution((2 + count) * half, after)
        self.pairs = nn.ModuleList(
            nn.Sequential(convolution(half, half, 3), convolution(half, half, 3)) for _ in range(count)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for pair in self.pairs:
            parts.append(parts[-1] + pair(parts[-1]) if self.residual else pair(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pan(nn.Module):
    """A YOLO-style network: a backbone, a neck that goes up and down again (PAN), and a head on each of three maps."""

    def __init__(self, c: int = 8) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolution(3, c, 3, 2), convolution(c, 2 * c, 3, 2), Split(2 * c, 2 * c))
        self.three = nn.Sequential(convolution(2 * c, 4 * c, 3, 2), Split(4 * c, 4 * c, 2))
        self.four = nn.Sequential(convolution(4 * c, 8 * c, 3, 2), Split(8 * c, 8 * c, 2))
        self.five = nn.Sequential(convolution(8 * c, 8 * c, 3, 2), Split(8 * c, 8 * c))
        self.up = nn.ModuleList([Split(16 * c, 8 * c, residual=False), Split(12 * c, 4 * c, residual=False)])
        self.strided = nn.ModuleList([convolution(4 * c, 4 * c, 3, 2), convolution(8 * c, 8 * c, 3, 2)])
        self.down = nn.ModuleList([Split(12 * c, 8 * c, residual=False), Split(16 * c, 8 * c, residual=False)])
        self.heads = nn.ModuleList(
            nn.Sequential(convolution(width, 2 * c, 3), nn.Conv2d(2 * c, 4 + CLASSES, 1))
            for width in (4 * c, 8 * c, 8 * c)
        )

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        three = self.three(self.stem(x))
        four = self.four(three)
        five = self.five(four)
        larger = nn.Upsample(scale_factor=2)
        upper = self.up[0](torch.cat([larger(five), four], 1))
        maps = [self.up[1](torch.cat([larger(upper), three], 1))]
        maps.append(self.down[0](torch.cat([self.strided[0](maps[0]), upper], 1)))
        maps.append(self.down[1](torch.cat([self.strided[1](maps[1]), five], 1)))
        return [head(each) for head, each in zip(self.heads, maps, strict=True)]


NETWORKS: dict[str, tuple[Callable[[], nn.Module], int, int]] = {
    "lraspp": (lraspp, 64, 1),
    "deeplab": (deeplab, 64, 2),
    "ssdlite": (Heads, 96, 12),
    "unet": (UNet, 32, 1),
    "pan": (Pan, 128, 3),
}
"""Factory, resolution in pixels, and number of outputs of each."""
