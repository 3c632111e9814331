"""A small vision transformer for 32x32 images: timm's, behind a stem of convolutions.

Transformers learn little from few images cut into patches. A stem of 3x3 convolutions in the place of the patches lets
a small one learn from a few thousand (Xiao et al., Early Convolutions Help Transformers See Better, 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from autotailor.zoo.layers import check_arguments, conv_bn, initialise_transformer, scale_channels, seeded

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer

RESOLUTION = 32
PATCH = 4  # the stem's stride
WIDTH = 64
HEAD = 16  # channels of one head of attention
DEPTH = 4
RATIO = 3.0  # inner width of a feed-forward layer over the width


class ConvolutionalStem(nn.Module):
    """Two 3x3 convolutions of stride 2 with BatchNorm and ReLU, and a 1x1 convolution, in the place of patches.

    Arguments are those that timm passes to what embeds patches.
    """

    def __init__(self, img_size: int, patch_size: int, in_chans: int, embed_dim: int, **_: Any) -> None:
        super().__init__()
        self.num_patches = (img_size // patch_size) ** 2
        self.body = nn.Sequential(
            conv_bn(in_chans, embed_dim // 2, 3, 2, activation=nn.ReLU()),
            conv_bn(embed_dim // 2, embed_dim, 3, 2, activation=nn.ReLU()),
        )
        self.project = nn.Conv2d(embed_dim, embed_dim, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, 3, h, w]`` to ``[n, h / 4 * w / 4, width]``."""
        return cast(torch.Tensor, self.project(self.body(x)).flatten(2).transpose(1, 2))


def vit_digits(num_classes: int = 10, width: float = 1.0, seed: int = 0) -> VisionTransformer:
    """A small vision transformer for the default data, untrained.

    Args:
        num_classes: outputs of the classifier.
        width: factor on the width; the number of heads follows.
        seed: of the initial weights.

    Raises:
        ZooError: an argument is out of range.
    """
    from timm.models.vision_transformer import VisionTransformer

    check_arguments("vit_digits", num_classes, width)
    channels = scale_channels(WIDTH, width, HEAD)

    def make() -> VisionTransformer:
        return VisionTransformer(
            img_size=RESOLUTION,
            patch_size=PATCH,
            num_classes=num_classes,
            global_pool="avg",
            class_token=False,
            embed_dim=channels,
            depth=DEPTH,
            num_heads=channels // HEAD,
            mlp_ratio=RATIO,
            embed_layer=ConvolutionalStem,
        )

    return seeded(make, seed, initialise_transformer)
