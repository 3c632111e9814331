"""Recalibrated BatchNorm: the statistics of calibration images, and what evaluation does with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import autotailor
import tiny_data
from autotailor import accuracy
from autotailor.data import DataSplits
from autotailor.finetuning import (
    FinetuneResult,
)
from training import fresh


class TestCalibration:
    def test_statistics_are_those_of_the_calibration_images(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits
    ) -> None:
        module = plain_net.module()
        subnet = plain_net.smallest()
        config = accuracy.CalibrationConfig(images=32, batch_size=32)
        found = accuracy.calibrate(module, subnet, tiny, config)
        again = accuracy.calibrate(plain_net.module(), subnet, tiny, config)
        assert found.keys() == again.keys()
        assert all(torch.equal(a, b) for name in found for a, b in zip(found[name], again[name], strict=True))
        other = accuracy.calibrate(module, plain_net.largest(), tiny, config)
        first = next(iter(other))
        images, _ = next(tiny.train.batches(0, 32))
        stem = module.elastic.graph.nodes[0]
        out = torch.nn.functional.conv2d(images, module.weight(stem.inputs[1]), stride=2, padding=1)
        assert torch.allclose(other[first][0], out.mean((0, 2, 3)), atol=1e-5)

    def test_evaluation_uses_the_statistics_it_is_given(self, finetuned: FinetuneResult, tiny: DataSplits) -> None:
        module = finetuned.net.module().eval()
        subnet = finetuned.net.largest()
        statistics = accuracy.Calibrator(tiny, accuracy.CalibrationConfig(32, 16)).statistics(module, subnet)
        found = accuracy.evaluate(module, subnet, tiny.test, statistics)
        assert found.values.shape == found.losses.shape == (40,)
        broken = {name: (mean + 50, variance) for name, (mean, variance) in statistics.items()}
        assert accuracy.evaluate(module, subnet, tiny.test, broken).values.mean() <= 0.5
        with pytest.raises(accuracy.AccuracyError, match="elastic module"):
            accuracy.evaluate(fresh(), subnet, tiny.test, statistics)  # type: ignore[arg-type]

    def test_one_training_image_is_not_enough(self, tiny: DataSplits) -> None:
        with pytest.raises(accuracy.AccuracyError, match="at least 2"):
            accuracy.Calibrator(replace(tiny, train=tiny_data.TinyStream(1)), accuracy.CalibrationConfig())
