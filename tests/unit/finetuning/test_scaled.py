"""Uniformly scaled networks, trained alone."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import networks
import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import (
    ScaledConfig,
    Teacher,
    TrainingError,
)
from training import close, equal, fresh, without_norm

TEACHER = Teacher(fresh().eval(), 0)


class TestScaled:
    CONFIG = ScaledConfig(images=90, batch_size=16, lrs=(1e-9, 4e-3), checkpoint_seconds=0.0)

    def test_the_best_learning_rate_on_the_validation_set_is_kept(self, tiny: DataSplits, tmp_path: Path) -> None:
        result = finetuning.train_scaled(networks.TinyResNet, TEACHER, tiny, self.CONFIG, tmp_path)
        assert [row["lr"] for row in result.trials] == [1e-9, 4e-3]
        best = max(result.trials, key=lambda row: row["validation_accuracy"])
        assert result.metrics["validation_accuracy"] == best["validation_accuracy"]
        assert result.metrics["images"] >= 90
        network = networks.TinyResNet()
        network.load_state_dict(result.state_dict)
        assert finetuning.accuracies(network, tiny, 1)["test_accuracy"] == result.metrics["test_accuracy"]

    def test_an_interrupted_run_ends_in_the_same_bits(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(self.CONFIG, lrs=(4e-3,), resolution=24)
        whole = finetuning.train_scaled(networks.TinyResNet, TEACHER, tiny, config, tmp_path / "a")
        with pytest.raises(KeyboardInterrupt):
            finetuning.train_scaled(
                networks.TinyResNet, TEACHER, tiny_data.splits(fail_at=(1, 1)), config, tmp_path / "b"
            )
        resumed = finetuning.train_scaled(networks.TinyResNet, TEACHER, tiny, config, tmp_path / "b")
        assert equal(whole.state_dict, resumed.state_dict)
        assert whole.metrics == resumed.metrics

    def test_without_batch_norm_micro_batches_change_only_the_rounding(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(self.CONFIG, lrs=(0.1,), optimizer="sgd")
        results = [
            finetuning.train_scaled(
                without_norm, TEACHER, tiny, replace(config, micro_batch=size), tmp_path / str(size)
            )
            for size in (0, 5)
        ]
        assert close(results[0].state_dict, results[1].state_dict)
        assert not equal(results[0].state_dict, results[1].state_dict)

    def test_a_rate_with_which_the_training_diverges_is_left_out(
        self, tiny: DataSplits, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        config = replace(self.CONFIG, lrs=(1e6, 4e-3), optimizer="sgd")
        result = finetuning.train_scaled(networks.TinyResNet, TEACHER, tiny, config, tmp_path)
        assert result.metrics["lr"] == 4e-3
        assert [math.isnan(row["loss"]) for row in result.trials] == [True, False]
        assert "lr 1e+06: the loss became" in caplog.text
        with pytest.raises(TrainingError, match=r"diverged with each of the rates \[1000000\.0\].*compare\.lrs"):
            finetuning.train_scaled(networks.TinyResNet, TEACHER, tiny, replace(config, lrs=(1e6,)), tmp_path)

    def test_a_teacher_of_other_classes_is_refused(self, tiny: DataSplits, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match="num_classes"):
            finetuning.train_scaled(networks.TinyResNet, TEACHER, replace(tiny, num_classes=9), self.CONFIG, tmp_path)

    def test_a_teacher_sees_images_of_its_own_resolution(self, tiny: DataSplits, tmp_path: Path) -> None:
        class OneSize(nn.Module):
            """Classifies images of 16 pixels, and no others."""

            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(3 * 16 * 16, 5)

            def forward(self, images: torch.Tensor) -> torch.Tensor:
                logits: torch.Tensor = self.linear(images.flatten(1))
                return logits

        torch.manual_seed(0)
        config = replace(self.CONFIG, lrs=(4e-3,))
        result = finetuning.train_scaled(networks.TinyResNet, Teacher(OneSize(), 16), tiny, config, tmp_path / "16")
        assert result.metrics["loss"] > 0
        with pytest.raises(TrainingError):
            finetuning.train_scaled(networks.TinyResNet, Teacher(OneSize(), 0), tiny, config, tmp_path / "0")
