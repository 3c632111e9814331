"""Pretraining, weight-shared finetuning, calibration, scaled networks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor import accuracy, finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import (
    FinetuneConfig,
    FinetuneResult,
    PretrainConfig,
    PretrainResult,
    ScaledConfig,
    TrainingError,
)
from autotailor.finetuning.loop import learning_rate

PRETRAIN = PretrainConfig(epochs=3, batch_size=16, checkpoint_seconds=0.0)


def fresh(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return networks.TinyResNet()


def equal(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def weights(net: autotailor.SuperNet) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(weight.copy()) for name, weight in net.graph.weights.items()}


@pytest.fixture(scope="module")
def pretrained(tiny: DataSplits, tmp_path_factory: pytest.TempPathFactory) -> PretrainResult:
    return finetuning.pretrain(fresh(), tiny, PRETRAIN, tmp_path_factory.mktemp("pretrained"))


class TestPretrain:
    def test_it_learns(self, pretrained: PretrainResult) -> None:
        losses = [row["loss"] for row in pretrained.history]
        assert losses[-1] < losses[0]
        assert pretrained.metrics["images"] == 3 * 48
        assert set(pretrained.metrics) == {"validation_accuracy", "test_accuracy", "loss", "images"}

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

    def test_a_loss_that_explodes_is_an_error_with_a_remedy(self, tiny: DataSplits, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match="lower lr"):
            finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, optimizer="sgd", lr=1e30, warmup=0.0), tmp_path)

    def test_gradient_clipping_and_sgd_run(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(PRETRAIN, epochs=1, optimizer="sgd", lr=0.05, gradient_norm=1.0)
        assert finetuning.pretrain(fresh(), tiny, config, tmp_path).history


def fresh_without_seed() -> nn.Module:
    with torch.random.fork_rng():
        return fresh()


def test_the_learning_rate_rises_and_falls() -> None:
    config = PretrainConfig(epochs=1, lr=1.0, warmup=0.1)
    rates = [learning_rate(config, step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates.index(max(rates)) == 9
    assert rates[-1] < 0.001


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
        right = accuracy.evaluate(module, subnet, tiny.test, statistics)
        assert right.shape == (40,)
        assert right.dtype == bool
        broken = {name: (mean + 50, variance) for name, (mean, variance) in statistics.items()}
        assert accuracy.evaluate(module, subnet, tiny.test, broken).mean() <= 0.5
        with pytest.raises(accuracy.AccuracyError, match="elastic module"):
            accuracy.evaluate(fresh(), subnet, tiny.test, statistics)  # type: ignore[arg-type]

    def test_one_training_image_is_not_enough(self, tiny: DataSplits) -> None:
        with pytest.raises(accuracy.AccuracyError, match="at least 2"):
            accuracy.Calibrator(replace(tiny, train=tiny_data.TinyStream(1)), accuracy.CalibrationConfig())


class TestScaled:
    CONFIG = ScaledConfig(images=90, batch_size=16, lrs=(1e-9, 4e-3), checkpoint_seconds=0.0)

    def test_the_best_learning_rate_on_the_validation_set_is_kept(self, tiny: DataSplits, tmp_path: Path) -> None:
        result = finetuning.train_scaled(networks.TinyResNet, fresh(), tiny, self.CONFIG, tmp_path)
        assert [row["lr"] for row in result.trials] == [1e-9, 4e-3]
        best = max(result.trials, key=lambda row: row["validation_accuracy"])
        assert result.metrics["validation_accuracy"] == best["validation_accuracy"]
        assert result.metrics["images"] >= 90
        network = networks.TinyResNet()
        network.load_state_dict(result.state_dict)
        assert finetuning.accuracies(network, tiny, 1)["test_accuracy"] == result.metrics["test_accuracy"]

    def test_an_interrupted_run_ends_in_the_same_bits(self, tiny: DataSplits, tmp_path: Path) -> None:
        config = replace(self.CONFIG, lrs=(4e-3,), resolution=24)
        whole = finetuning.train_scaled(networks.TinyResNet, fresh(), tiny, config, tmp_path / "a")
        with pytest.raises(KeyboardInterrupt):
            finetuning.train_scaled(
                networks.TinyResNet, fresh(), tiny_data.splits(fail_at=(1, 1)), config, tmp_path / "b"
            )
        resumed = finetuning.train_scaled(networks.TinyResNet, fresh(), tiny, config, tmp_path / "b")
        assert equal(whole.state_dict, resumed.state_dict)
        assert whole.metrics == resumed.metrics

    def test_a_teacher_of_other_classes_is_refused(self, tiny: DataSplits, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match="num_classes"):
            finetuning.train_scaled(networks.TinyResNet, fresh(), replace(tiny, num_classes=9), self.CONFIG, tmp_path)


SCRIPT = """
import sys, torch, networks, tiny_data
from pathlib import Path
from autotailor import accuracy, finetuning
torch.manual_seed(0)
config = finetuning.PretrainConfig(epochs=6, batch_size=16, checkpoint_seconds=0.0)
result = finetuning.pretrain(networks.TinyResNet(), tiny_data.splits(), config, Path(sys.argv[1]))
torch.save(result.state_dict, sys.argv[2])
"""


def test_a_killed_process_goes_on_and_ends_in_the_same_bits(tmp_path: Path, tiny: DataSplits) -> None:
    checkpoint, output = tmp_path / "killed" / "pretrain.ckpt", tmp_path / "killed.pt"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", SCRIPT, str(checkpoint.parent), str(output)]
    killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert checkpoint.exists()
    assert not output.exists()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=240)
    whole = finetuning.pretrain(fresh(), tiny, replace(PRETRAIN, epochs=6), tmp_path / "whole")
    assert equal(whole.state_dict, torch.load(output))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_training_keeps_the_step_at_work(
    tmp_path: Path,
    tiny: DataSplits,
    pretrained: PretrainResult,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With checkpoints every hour, all that training keeps is what the signal made it keep."""
    draw, config = tiny_data.draw, replace(PRETRAIN, checkpoint_seconds=3600.0)

    def draw_and_end(count: int, *words: int) -> tuple[torch.Tensor, torch.Tensor]:
        if words == (0, 1):
            os.kill(os.getpid(), number)
        return draw(count, *words)

    monkeypatch.setattr(tiny_data, "draw", draw_and_end)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        finetuning.pretrain(fresh(), tiny, config, tmp_path)
    monkeypatch.undo()
    kept = torch.load(tmp_path / "pretrain.ckpt")["state"]["position"]
    assert (kept["epoch"], kept["batch"]) == (1, 1)
    again = finetuning.pretrain(fresh(), tiny, config, tmp_path)
    assert equal(again.state_dict, pretrained.state_dict)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_checkpoints_are_minutes_apart() -> None:
    assert PretrainConfig(epochs=1).checkpoint_seconds == FinetuneConfig(epochs=1).checkpoint_seconds == 300
