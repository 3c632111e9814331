"""Pretraining: it learns, resumes in the same bits, and refuses what does not fit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch import nn

import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import (
    PretrainResult,
    TrainingError,
)
from training import PRETRAIN, close, equal, fresh, without_norm


class TestPretrain:
    def test_it_learns(self, pretrained: PretrainResult) -> None:
        losses = [row["loss"] for row in pretrained.history]
        assert losses[-1] < losses[0]
        assert pretrained.metrics["images"] == 3 * 48
        assert set(pretrained.metrics) == {"validation_accuracy", "loss", "images"}

    def test_the_same_run_gives_the_same_bits_whatever_happened_before(
        self, pretrained: PretrainResult, tiny: DataSplits, tmp_path: Path
    ) -> None:
        network = fresh()
        torch.manual_seed(12345)
        again = finetuning.pretrain(network, tiny, replace(PRETRAIN, checkpoint_seconds=1e9), tmp_path)
        assert equal(again.state_dict, pretrained.state_dict)
        assert again.history == pretrained.history
        assert again.metrics == pretrained.metrics

    @pytest.mark.parametrize("at", [(0, 1), (1, 0), (2, 2)], ids=str)
    def test_an_interrupted_run_ends_in_the_same_bits(
        self, pretrained: PretrainResult, tiny: DataSplits, tmp_path: Path, at: tuple[int, int]
    ) -> None:
        with pytest.raises(KeyboardInterrupt):
            finetuning.pretrain(fresh(), tiny_data.splits(fail_at=at), PRETRAIN, tmp_path)
        again = finetuning.pretrain(fresh(), tiny, PRETRAIN, tmp_path)
        assert equal(again.state_dict, pretrained.state_dict)
        assert again.history == pretrained.history

    def test_without_epochs_there_is_no_loss(self, tiny: DataSplits, tmp_path: Path) -> None:
        """NaN would be no number of JSON."""
        metrics = finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, epochs=0), tmp_path).metrics
        assert set(metrics) == {"validation_accuracy", "images"}
        assert metrics["images"] == 0

    def test_a_finished_run_is_not_repeated(self, tiny: DataSplits, tmp_path: Path) -> None:
        first = finetuning.pretrain(fresh(), tiny, PRETRAIN, tmp_path)
        again = finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(0, 0)), PRETRAIN, tmp_path)
        assert equal(first.state_dict, again.state_dict)

    def test_another_configuration_starts_over(self, tiny: DataSplits, tmp_path: Path) -> None:
        finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, epochs=1), tmp_path)
        with pytest.raises(KeyboardInterrupt):
            finetuning.pretrain(
                fresh(), tiny_data.splits(fail_at=(0, 0)), replace(PRETRAIN, epochs=1, lr=1e-3), tmp_path
            )
        with pytest.raises(KeyboardInterrupt):
            finetuning.pretrain(fresh(1), tiny_data.splits(fail_at=(0, 0)), replace(PRETRAIN, epochs=1), tmp_path)

    def test_dropout_is_reproduced_too(self, tiny: DataSplits, tmp_path: Path) -> None:
        def network() -> nn.Module:
            torch.manual_seed(0)
            return nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Dropout(), nn.Linear(192, 5))

        whole = finetuning.pretrain(network(), tiny, PRETRAIN, tmp_path / "a")
        with pytest.raises(KeyboardInterrupt):
            finetuning.pretrain(network(), tiny_data.splits(fail_at=(1, 1)), PRETRAIN, tmp_path / "b")
        resumed = finetuning.pretrain(network(), tiny, PRETRAIN, tmp_path / "b")
        assert equal(whole.state_dict, resumed.state_dict)

    def test_pytorchs_global_state_is_left_as_it_was(self, tiny: DataSplits, tmp_path: Path) -> None:
        before = torch.get_rng_state(), torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        finetuning.pretrain(fresh_without_seed(), tiny, replace(PRETRAIN, epochs=1, threads=2), tmp_path)
        after = torch.get_rng_state(), torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        assert torch.equal(before[0], after[0])
        assert before[1:] == after[1:]

    def test_weights_are_contiguous(self, pretrained: PretrainResult) -> None:
        assert all(tensor.is_contiguous() for tensor in pretrained.state_dict.values())

    def test_mixed_precision_is_resumed_bit_equal_and_close_to_fp32(
        self, pretrained: PretrainResult, tiny: DataSplits, tmp_path: Path
    ) -> None:
        mixed = replace(PRETRAIN, precision="bf16")
        whole = finetuning.pretrain(fresh(), tiny, mixed, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            finetuning.pretrain(fresh(), tiny_data.splits(fail_at=(1, 1)), mixed, tmp_path / "killed")
        assert equal(finetuning.pretrain(fresh(), tiny, mixed, tmp_path / "killed").state_dict, whole.state_dict)
        assert all(tensor.dtype != torch.bfloat16 for tensor in whole.state_dict.values())
        losses = [result.history[-1]["loss"] for result in (whole, pretrained)]
        assert losses[0] != losses[1]
        assert losses[0] == pytest.approx(losses[1], rel=0.1)

    @pytest.mark.parametrize(
        ("network", "says"),
        [
            (nn.Sequential(nn.Flatten(), nn.Linear(3072, 7)), "expected .2, 5."),
            (nn.Linear(7, 5), "cannot read images"),
            ("resnet", "torch.nn.Module"),
            (
                nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.ConstantPad1d((0, 2), 0.0)),
                "no trainable",
            ),
            (nn.Sequential(nn.Flatten(), nn.Linear(3072, 5), nn.Softmax(1)), "needs logits"),
        ],
        ids=["classes", "shape", "type", "untrainable", "probabilities"],
    )
    def test_a_network_that_does_not_fit_is_refused(
        self, network: nn.Module, says: str, tiny: DataSplits, tmp_path: Path
    ) -> None:
        with pytest.raises(TrainingError, match=says):
            finetuning.pretrain(network, tiny, PRETRAIN, tmp_path)

    def test_auxiliary_heads_are_refused_before_training(self, tiny: DataSplits, tmp_path: Path) -> None:
        network = torchvision.models.googlenet(num_classes=5, aux_logits=True, init_weights=False)
        small = replace(tiny, resolution=64)
        with pytest.raises(TrainingError, match=r"GoogLeNet returns a GoogLeNetOutputs while it trains; .*aux_logits"):
            finetuning.pretrain(network, small, PRETRAIN, tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_loss_that_explodes_is_an_error_with_a_remedy(self, tiny: DataSplits, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match="lower lr"):
            finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, optimizer="sgd", lr=1e30, warmup=0.0), tmp_path)

    @pytest.mark.parametrize("change", [{"micro_batch": 5}, {"micro_batch": 3, "gradient_norm": 0.05}], ids=str)
    def test_without_batch_norm_micro_batches_change_only_the_rounding(
        self, change: dict[str, Any], tiny: DataSplits, tmp_path: Path
    ) -> None:
        config = replace(PRETRAIN, optimizer="sgd", lr=0.1, gradient_norm=change.get("gradient_norm", 0.0))
        whole = finetuning.pretrain(without_norm(), tiny, config, tmp_path / "whole")
        parts = finetuning.pretrain(without_norm(), tiny, replace(config, **change), tmp_path / "parts")
        assert close(whole.state_dict, parts.state_dict)
        assert not equal(whole.state_dict, parts.state_dict)
        assert [row["loss"] for row in parts.history] == pytest.approx([row["loss"] for row in whole.history], rel=1e-4)

    @pytest.mark.parametrize(("batch_size", "warns"), [(48, False), (49, True)])
    def test_a_batch_larger_than_an_epoch_is_told(
        self, batch_size: int, warns: bool, tiny: DataSplits, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, epochs=1, batch_size=batch_size), tmp_path)
        told = "batch_size is 49, and an epoch has 48 images, so that each epoch is one step of 48 images; choose"
        assert (told in caplog.text) == warns

    def test_gradient_clipping_and_sgd_run(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(PRETRAIN, epochs=1, optimizer="sgd", lr=0.05, gradient_norm=1.0)
        assert finetuning.pretrain(fresh(), tiny, config, tmp_path).history


def fresh_without_seed() -> nn.Module:
    with torch.random.fork_rng():
        return fresh()
