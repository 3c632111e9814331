"""Which images are right, against PyTorch without this package."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import autotailor
from autotailor.accuracy.errors import AccuracyError
from autotailor.accuracy.evaluation import correctness, evaluate, percent
from autotailor.data import DataSplits


class Corner(nn.Module):
    """Says the class that a few pixels sum up to; has dropout, which evaluation leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.linear = nn.Dropout(0.9), nn.Linear(3 * 4 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.drop(F.adaptive_avg_pool2d(x, 4)).flatten(1))


def everything(tiny: DataSplits) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = zip(*tiny.validation.batches(7), strict=True)
    return torch.cat(images), torch.cat(labels)


@pytest.mark.parametrize("resolution", [0, 20])
@pytest.mark.parametrize("batch_size", [5, 256])
def test_each_image_is_right_as_pytorch_says_it_alone(tiny: DataSplits, resolution: int, batch_size: int) -> None:
    torch.manual_seed(0)
    network = Corner()
    images, labels = everything(tiny)
    found = correctness(network.train(), tiny.validation, resolution, batch_size)
    if resolution:
        images = F.interpolate(images, (resolution,) * 2, mode="bilinear", antialias=True, align_corners=False)
    with torch.no_grad():
        expected = torch.cat([network.eval()(image[None]).argmax(1) for image in images]) == labels
    assert found.tolist() == expected.tolist()
    assert percent(found) == pytest.approx(100 * np.mean(expected.tolist()))


def test_a_subnet_is_evaluated_at_its_resolution_with_its_statistics(
    plain_net: autotailor.SuperNet, tiny: DataSplits
) -> None:
    module, subnet = plain_net.module(), plain_net.smallest()
    side = int(subnet["resolution"])
    images, labels = everything(tiny)
    sized = F.interpolate(images, (side, side), mode="bilinear", antialias=True, align_corners=False)
    with module.activate(subnet).collecting() as collector:
        module(sized)
    statistics = collector.statistics()
    with torch.no_grad():
        expected = plain_net.build(subnet, statistics)(sized).argmax(1) == labels
    assert evaluate(module, subnet, tiny.validation, statistics).tolist() == expected.tolist()
    assert module.active == subnet


def test_a_module_that_is_not_elastic_is_refused(plain_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    with pytest.raises(AccuracyError, match=r"expected an elastic module .*, not Corner"):
        evaluate(Corner(), plain_net.largest(), tiny.validation, None)  # type: ignore[arg-type]
