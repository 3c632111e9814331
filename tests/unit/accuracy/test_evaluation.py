"""Which images are right, and what their losses are, against PyTorch without this package."""

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
from autotailor.data.errors import DataError
from autotailor.data.splits import TensorEvaluationSet
from autotailor.task import find


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
        logits = plain_net.build(subnet, statistics, logits=True)(sized)
    found = evaluate(module, subnet, tiny.validation, statistics)
    assert found.values.tolist() == (logits.argmax(1) == labels).tolist()
    expected = F.cross_entropy(logits.double(), labels, reduction="none")
    np.testing.assert_allclose(found.losses, expected, rtol=1e-4, atol=1e-6)
    assert module.active == subnet


class Diverged(nn.Module):
    """Answers NaN, for the first class or for all."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = x.new_zeros(x.shape[0], 5)
        logits[:, : self.classes] = torch.nan
        return logits


@pytest.mark.parametrize("classes", [1, 5])
def test_a_network_that_answers_nan_is_right_on_no_image(classes: int, tiny: DataSplits) -> None:
    images, labels = everything(tiny)
    assert (labels == 0).any()
    network = Diverged(classes)
    assert not correctness(network, tiny.validation).any()
    assert not find("classification").judge(network(images), labels).values.any()


def test_images_without_labels_are_refused(plain_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    images = next(tiny.validation.batches(40))[0]
    unlabelled = TensorEvaluationSet(images, np.full(40, -1), np.arange(40))
    with pytest.raises(DataError, match="40 of 40 images have no label"):
        evaluate(plain_net.module(), plain_net.largest(), unlabelled, None)


def test_a_module_that_is_not_elastic_is_refused(plain_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    with pytest.raises(AccuracyError, match=r"expected an elastic module .*, not Corner"):
        evaluate(Corner(), plain_net.largest(), tiny.validation, None)  # type: ignore[arg-type]
