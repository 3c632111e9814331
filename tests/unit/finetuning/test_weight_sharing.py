"""Weight-shared finetuning: what it trains, reports and reproduces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import autotailor
import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import (
    FinetuneConfig,
    FinetuneResult,
    TrainingError,
)
from training import equal, weights


class TestFinetune:
    def test_it_trains_and_reports(self, finetuned: FinetuneResult, plain_net: autotailor.SuperNet) -> None:
        assert finetuned.net.space == plain_net.space
        assert finetuned.net.sorting
        assert len(finetuned.history) == 2
        assert finetuned.metrics["images"] == 96
        for who in ("original", "largest", "smallest"):
            for split in ("validation", "test"):
                assert 0 <= finetuned.metrics[f"{who}_{split}_accuracy"] <= 100
        assert not equal(weights(finetuned.net), weights(plain_net))

    def test_the_result_stands_alone(self, finetuned: FinetuneResult, tiny: DataSplits) -> None:
        accuracy = finetuning.accuracies(finetuned.net.build(finetuned.net.largest()), tiny, threads=1)
        assert accuracy["test_accuracy"] == finetuned.metrics["largest_test_accuracy"]

    @pytest.mark.parametrize("strategy", finetuning.sampling.names())
    def test_an_interrupted_run_ends_in_the_same_bits(
        self,
        strategy: str,
        plain_net: autotailor.SuperNet,
        tiny: DataSplits,
        finetune_config: FinetuneConfig,
        tmp_path: Path,
    ) -> None:
        config = replace(finetune_config, strategy=strategy, checkpoint_seconds=0.0)
        whole = finetuning.finetune(plain_net, tiny, config, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            finetuning.finetune(plain_net, tiny_data.splits(fail_at=(1, 1)), config, tmp_path / "killed")
        resumed = finetuning.finetune(plain_net, tiny, config, tmp_path / "killed")
        assert equal(weights(whole.net), weights(resumed.net))
        assert whole.history == resumed.history
        assert whole.metrics == resumed.metrics

    def test_the_number_of_workers_changes_nothing(
        self,
        finetuned: FinetuneResult,
        plain_net: autotailor.SuperNet,
        tiny: DataSplits,
        finetune_config: FinetuneConfig,
        tmp_path: Path,
    ) -> None:
        workers = 3 - finetune_config.workers
        other = finetuning.finetune(plain_net, tiny, replace(finetune_config, workers=workers), tmp_path)
        assert equal(weights(other.net), weights(finetuned.net))

    def test_without_epochs_the_largest_subnet_stays_the_original(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
    ) -> None:
        result = finetuning.finetune(plain_net, tiny, replace(finetune_config, epochs=0), tmp_path)
        before, after = (net.build(net.largest()) for net in (plain_net, result.net))
        changed = {name for name, weight in weights(result.net).items() if weight.ndim > 1}
        assert changed
        assert result.net.sorting
        images = torch.randn(4, 3, 32, 32)
        before.train()
        after.train()
        with torch.no_grad():  # batch statistics on both sides: only the recalibrated ones differ
            assert torch.allclose(before(images), after(images), atol=1e-4)

    def test_channels_are_sorted_only_on_request(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
    ) -> None:
        config = replace(finetune_config, epochs=0, sort=False)
        assert not finetuning.finetune(plain_net, tiny, config, tmp_path).net.sorting

    def test_what_does_not_fit_is_refused_before_training(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
    ) -> None:
        with pytest.raises(TrainingError, match="known are alternating"):
            finetuning.finetune(plain_net, tiny, replace(finetune_config, strategy="x"), tmp_path)
        with pytest.raises(TrainingError, match="num_classes"):
            finetuning.finetune(plain_net, replace(tiny, num_classes=9), finetune_config, tmp_path)
        assert not list(tmp_path.iterdir())
