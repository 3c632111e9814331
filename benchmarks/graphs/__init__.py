"""Fourteen networks that are no plain classifiers, and whether all forms of their SubNets agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from graphs import detectors, series, towers
from returning import Pan, UNet, deeplab, lraspp


class Case(NamedTuple):
    """A network.

    Attributes:
        make: makes the network.
        shape: of the array that it takes, batch 1.
    """

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]


CASES = {
    "LRASPP": Case(lraspp, (1, 3, 128, 128)),
    "DeepLabV3-MobileNet": Case(deeplab, (1, 3, 96, 96)),
    "FCN": Case(detectors.fcn, (1, 3, 64, 64)),
    "SSDLite320": Case(detectors.ssdlite, (1, 3, 128, 128)),
    "RetinaNet": Case(detectors.retinanet, (1, 3, 64, 64)),
    "FasterRCNN's backbone with FPN": Case(detectors.pyramid, (1, 3, 128, 128)),
    "keypoint heat maps": Case(detectors.keypoints, (1, 3, 96, 64)),
    "timm features_only with an FPN": Case(detectors.features, (1, 3, 128, 128)),
    "U-Net": Case(UNet, (1, 3, 64, 64)),
    "PAN with three heads": Case(Pan, (1, 3, 128, 128)),
    "BiFPN": Case(detectors.BiFPN, (1, 3, 256, 256)),
    "Conv1d residual network": Case(series.Residual, (1, 6, 128)),
    "CRNN up to its GRU": Case(series.CRNN, (1, 1, 32, 96)),
    "two towers": Case(towers.Towers, (1, 6, 32, 32)),
}
