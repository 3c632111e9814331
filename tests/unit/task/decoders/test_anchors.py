"""The decoders of torchvision's heads give what torchvision makes of the same heads."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torchvision.models.detection import RetinaNet, ssdlite320_mobilenet_v3_large
from torchvision.models.detection.image_list import ImageList

from autotailor.task.decoders.anchors import retinanet, ssdlite320

CLASSES = 5
"""With the background."""


def retina() -> nn.Module:
    backbone = nn.Conv2d(3, 16, 1)
    backbone.out_channels = 16
    return RetinaNet(backbone, CLASSES)


def ssdlite() -> nn.Module:
    return ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)


CASES = {
    "SSDLite320": (ssdlite, ssdlite320, 320, (20, 10, 5, 3, 2, 1)),
    "RetinaNet": (retina, retinanet, 96, (12, 6, 3, 2, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_boxes_are_those_of_torchvision(case: str) -> None:
    make, decode, side, grids = CASES[case]
    torch.manual_seed(0)
    network = make().eval()
    anchors = network.anchor_generator(
        ImageList(torch.zeros(2, 3, side, side), [(side, side)] * 2), [torch.zeros(2, 1, grid, grid) for grid in grids]
    )
    regression = torch.randn(2, len(anchors[0]), 4)
    logits = 1.5 * torch.randn(2, len(anchors[0]), CLASSES) - 1
    logits[..., 0] = -9  # RetinaNet has this class, and no training picture
    heads = {"bbox_regression": regression, "cls_logits": logits}
    if case == "RetinaNet":
        counts = [grid * grid * 9 for grid in grids]
        split = {name: list(value.split(counts, 1)) for name, value in heads.items()}
        wanted = network.postprocess_detections(split, [list(a.split(counts)) for a in anchors], [(side, side)] * 2)
    else:
        wanted = network.postprocess_detections(heads, anchors, [(side, side)] * 2)
    for found, known in zip(decode((logits, regression), side), wanted, strict=True):
        torch.testing.assert_close(found["scores"][:50], known["scores"][:50])
        torch.testing.assert_close(found["boxes"][:50], known["boxes"][:50], atol=1e-3, rtol=1e-4)
        assert (found["labels"][:50] + 1 == known["labels"][:50]).all()


def test_heads_of_other_shapes_are_refused_with_what_is_expected() -> None:
    with pytest.raises(ValueError, match=r"expected \[n, anchors, 4\] and \[n, anchors, classes\], not \[1, 7, 3\]"):
        ssdlite320((torch.zeros(1, 7, 3), torch.zeros(1, 7, 5)), 320)
    with pytest.raises(ValueError, match="images of 320 pixels have 3234 anchors, and the outputs are for 7"):
        ssdlite320((torch.zeros(1, 7, 4), torch.zeros(1, 7, 5)), 320)


def test_the_91_classes_of_torchvisions_weights_are_the_80_of_coco() -> None:
    regression, logits = torch.zeros(1, 3234, 4), torch.full((1, 3234, 91), -9.0)
    logits[0, 5, 90] = 9
    (found,) = ssdlite320((regression, logits), 320)
    assert found["labels"][0] == 79
