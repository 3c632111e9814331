"""Weight-shared finetuning: what it trains, reports and reproduces."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import networks

import autotailor
import tiny_data
from autotailor import finetuning
from autotailor.accuracy import CalibrationConfig, Calibrator
from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.compute import placement
from autotailor.data import DataSplits
from autotailor.data.splits import Batch, TrainStream, sized
from autotailor.finetuning import (
    FinetuneConfig,
    FinetuneResult,
    TrainingError,
)
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.loss import make_loss
from autotailor.finetuning.sampling.strategy import stages_of
from autotailor.finetuning.training import optimizers
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.regional_muon import RegionalMuon
from autotailor.finetuning.training.states.checkpoint import Checkpoint
from autotailor.finetuning.training.steps import Step
from autotailor.finetuning.weight_sharing import WeightSharing
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.junctions import selected
from autotailor.ir.space.subnet import SubNet
from autotailor.task import find
from fake_cuda import CUDA, fake_cuda
from regions import outside
from training import close, equal, weights


class TestFinetune:
    def test_it_trains_and_reports(self, finetuned: FinetuneResult, plain_net: autotailor.SuperNet) -> None:
        assert finetuned.net.space == plain_net.space
        assert finetuned.net.sorting
        assert len(finetuned.history) == 2
        assert finetuned.metrics["images"] == 96
        for who in ("original", "largest", "smallest"):
            assert 0 <= finetuned.metrics[f"{who}_validation_accuracy"] <= 100
        assert not equal(weights(finetuned.net), weights(plain_net))

    def test_the_result_stands_alone(self, finetuned: FinetuneResult, tiny: DataSplits) -> None:
        accuracy = finetuning.accuracies(finetuned.net.build(finetuned.net.largest()), tiny, threads=1)
        assert accuracy["validation_accuracy"] == finetuned.metrics["largest_validation_accuracy"]

    def test_a_compiled_teacher_teaches_the_same(
        self,
        finetuned: FinetuneResult,
        plain_net: autotailor.SuperNet,
        tiny: DataSplits,
        finetune_config: FinetuneConfig,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        asked: list[torch.nn.Module] = []

        def compile_(network: torch.nn.Module, **options: object) -> object:
            asked.append(network)
            return compiler(network, backend="aot_eager", **options)

        compiler = torch.compile
        monkeypatch.setattr(torch, "compile", compile_)
        found = finetuning.finetune(plain_net, tiny, replace(finetune_config, compile=True), tmp_path)
        assert len(asked) == 2  # the one that shows whether anything can be compiled, and the teacher
        assert close(weights(finetuned.net), weights(found.net))

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

    def test_the_number_of_workers_changes_nothing_where_the_largest_subnet_teaches(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
    ) -> None:
        config = replace(finetune_config, strategy="uniform", teacher="largest", subnets=3, epochs=1)
        one, three = (
            finetuning.finetune(plain_net, tiny, replace(config, workers=workers), tmp_path / str(workers))
            for workers in (1, 3)
        )
        assert equal(weights(one.net), weights(three.net))

    def test_without_epochs_the_largest_subnet_stays_the_original(
        self, plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
    ) -> None:
        result = finetuning.finetune(plain_net, tiny, replace(finetune_config, epochs=0), tmp_path)
        before, after = (net.build(net.largest()) for net in (plain_net, result.net))
        assert result.net.sorting
        assert not equal(weights(result.net), weights(plain_net))
        images = torch.randn(4, 3, 32, 32)
        with torch.no_grad():  # with the statistics that the original network came with
            assert torch.allclose(before(images), after(images), atol=1e-4)
        assert (result.history, result.metrics["images"]) == ([], 0)
        found = {name: result.metrics[f"{name}_validation_accuracy"] for name in ("original", "largest")}
        assert found["original"] == found["largest"]
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(("epochs", "share"), [(0, 0.5), (1, 1.0)])
    def test_trained_weights_have_statistics_of_their_own(
        self,
        plain_net: autotailor.SuperNet,
        tiny: DataSplits,
        finetune_config: FinetuneConfig,
        tmp_path: Path,
        epochs: int,
        share: float,
    ) -> None:
        config = replace(finetune_config, epochs=epochs)
        found = finetuning.finetune(plain_net.recalibrated(0.5), tiny, config, tmp_path / "half")
        assert found.net.elastic.recalibrated == share
        alone = finetuning.finetune(plain_net.recalibrated(share), tiny, config, tmp_path / "own")
        assert found.metrics == alone.metrics
        assert equal(weights(found.net), weights(alone.net))

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


def original(net: autotailor.SuperNet) -> Teacher:
    network = net.build(net.largest(), logits=True).eval().requires_grad_(False)
    return Teacher(network, resolution_of(net.largest()))


def sharing(
    module: ElasticModule, net: autotailor.SuperNet, config: FinetuneConfig, teacher: Teacher | None = None
) -> WeightSharing:
    """Steps of training where the module is."""
    strategy = finetuning.sampling.create("sandwich", net.space, stages_of(net.space, net.stages), 3)
    teacher = teacher or original(net)
    return WeightSharing(
        module,
        teacher,
        strategy,
        config,
        make_loss(config, find("classification"), net.num_classes, net.head.independent),
    )


def test_subnets_of_smaller_images_are_taught_on_these_where_outputs_tell_lengths(
    plain_net: autotailor.SuperNet, finetune_config: FinetuneConfig
) -> None:
    """Whoever teaches: SubNets that are the teacher at other resolutions have nothing to learn."""
    whole = {**plain_net.largest().assignment}
    smaller = [
        SubNet.from_assignment(plain_net.space, {**whole, "resolution": side})
        for side in plain_net.space["resolution"].choices[:2]
    ]
    images = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    for teacher in ("original", "largest"):
        config = replace(finetune_config, teacher=None if teacher == "original" else teacher)
        for at_side in (True, False):
            module = plain_net.module(logits=True)
            strategy = finetuning.sampling.create(
                "uniform", plain_net.space, stages_of(plain_net.space, plain_net.stages), 2
            )
            step = WeightSharing(module, original(plain_net), strategy, config, lambda *_: torch.zeros(()), at_side)
            lessons = step._lessons(smaller, images)
            for subnet in smaller:
                if teacher == "original":
                    seen = original(plain_net).network(sized(images, resolution_of(subnet) if at_side else 32))
                    torch.testing.assert_close(lessons[subnet].result(), seen)
            answers = [lessons[subnet].result() for subnet in smaller]
            assert torch.equal(*answers) == (not at_side)


class Drawn(TrainStream):
    """Batches that were drawn before: on fake tensors nothing can be drawn."""

    def __init__(self, drawn: list[Batch]) -> None:
        self.drawn = drawn

    def __len__(self) -> int:
        return sum(len(labels) for _, labels in self.drawn)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        return iter(self.drawn[start:])


def step_on(device: torch.device) -> Step:
    images, labels = tiny_data.draw(8, 3)
    random = np.random.default_rng(0)
    return Step(placement.put_images(images, device), placement.put(labels, device), 0.0, random)


def test_the_gradients_of_a_step_are_those_of_the_scaled_loss(
    plain_net: autotailor.SuperNet, finetune_config: FinetuneConfig
) -> None:
    losses, gradients = [], []
    for scale in (1.0, 0.25):
        step = sharing(plain_net.module(logits=True), plain_net, finetune_config)
        losses.append(step(replace(step_on(placement.CPU), loss_scale=scale)))
        gradients.append([gradient.value for gradient in step._module.partial_gradients])
    assert losses[0] == losses[1]
    assert all(torch.allclose(0.25 * whole, part) for whole, part in zip(*gradients, strict=True))
    assert any(whole.abs().max() > 0.01 for whole in gradients[0])


def test_a_step_by_muon_leaves_what_the_step_did_not_train(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(finetune_config, optimizer="muon", strategy="uniform", subnets=1, epochs=1, weight_decay=0.5)
    strategy = finetuning.sampling.create("uniform", plain_net.space, stages_of(plain_net.space, plain_net.stages), 1)
    module = plain_net.module(logits=True)
    step = WeightSharing(
        module,
        original(plain_net),
        strategy,
        config,
        make_loss(config, find("classification"), plain_net.num_classes, False),
    )
    kept: list[dict[torch.Tensor, torch.Tensor]] = []
    left = 0

    def watched(batch: Step) -> float:
        kept.append({parameter: parameter.detach().clone() for parameter in module.parameters()})
        return step(batch)

    train(module, tiny.train, config, watched, tmp_path / "x.ckpt", "test", "test")
    assert len(kept) > 1
    regions = {gradient.weight: gradient.region for gradient in module.partial_gradients}
    for parameter, before in kept[-1].items():
        if parameter not in regions or parameter.ndim < 2 or any(parameter.shape[axis] == 1 for axis in (0, 1)):
            continue  # what Muon leaves to NAdamW
        now, was = (outside(tensor, regions[parameter]) for tensor in (parameter.detach(), before))
        assert torch.equal(now, was)
        left += len(now)
        assert not torch.equal(parameter, before)
    assert left


def test_what_muon_moves_by_is_unscaled_and_clipped(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    norms: dict[str, list[float]] = {}
    move = RegionalMuon._move
    for precision, limit in (("fp32", 0.0), ("fp16", 0.0), ("fp16", 1e-3)):
        found = norms.setdefault(f"{precision} {limit}", [])

        def watched(self: RegionalMuon, matrix: torch.Tensor, gradient: torch.Tensor, group: Any) -> None:
            found.append(float(gradient.norm()))  # noqa: B023
            move(self, matrix, gradient, group)

        monkeypatch.setattr(RegionalMuon, "_move", watched)
        config = replace(finetune_config, optimizer="muon", strategy="uniform", subnets=1, precision=precision)
        finetuning.finetune(plain_net, tiny, replace(config, gradient_norm=limit), tmp_path / str(len(norms)))
    plain, scaled, clipped = (np.array(each) for each in norms.values())
    assert plain[0] > 1e-3
    np.testing.assert_allclose(scaled[0], plain[0], rtol=0.1)
    assert 1e-4 < clipped.max() <= 1.001e-3


def test_fused_steps_are_those_that_are_not_fused(
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fused AdamW of the processor reads weights and gradients as they lie in memory.

    AdamW's first steps have the length of the learning rate, however small a gradient is, so that an entry whose
    gradient is next to zero goes where rounding leads it. A large epsilon makes its step small.
    """
    found = {}
    for name in ("adamw", "adamw_fused"):
        make = optimizers._OPTIMIZERS[name]

        def steady(groups: optimizers.Groups, lr: float, make: optimizers.Make = make) -> torch.optim.Optimizer:
            optimizer = make(groups, lr)
            for group in optimizer.param_groups:
                group["eps"] = 1e-3
            return optimizer

        monkeypatch.setitem(optimizers._OPTIMIZERS, name, steady)
        config = replace(finetune_config, strategy="uniform", subnets=1, optimizer=name)
        found[name] = weights(finetuning.finetune(plain_net, tiny, config, tmp_path / name).net)
    for name, weight in found["adamw"].items():
        torch.testing.assert_close(found["adamw_fused"][name], weight, rtol=1e-3, atol=1e-4)


def test_the_largest_subnet_teaches_the_others_where_it_is_asked_to(
    plain_net: autotailor.SuperNet, finetune_config: FinetuneConfig
) -> None:
    config = replace(finetune_config, teacher="largest", strategy="uniform")
    module, batch = plain_net.module(logits=True), step_on(placement.CPU)
    with torch.no_grad():  # the shared weights have moved away from the original network
        for parameter in module.parameters():
            parameter.mul_(1.1)
    strategy = finetuning.sampling.create("uniform", plain_net.space, stages_of(plain_net.space, plain_net.stages), 1)
    (drawn,) = strategy.draw(0.0, np.random.default_rng(0))
    assert drawn != plain_net.largest()
    loss = make_loss(config, find("classification"), plain_net.num_classes, plain_net.head.independent)
    found = WeightSharing(module, original(plain_net), strategy, config, loss)(batch)
    logits = []
    for subnet in (drawn, plain_net.largest()):
        images = sized(batch.images, resolution_of(subnet))
        logits.append(module.train().activate(subnet)(images).detach())
    assert found == pytest.approx(loss(logits[0], batch.labels, logits[1], config).item())


def test_a_frozen_network_stays_and_its_alternatives_learn(
    tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    space = {"resolution": [32], "alternatives": {"shrunk": [0.5], "low_rank": [0.5], "merged": [1]}}
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    config = replace(finetune_config, freeze="original", sort=False)
    result = finetuning.finetune(net, tiny, config, tmp_path)
    given, found = selected(net.graph).weights, result.net.graph.weights
    changed = {name for name, weight in net.graph.weights.items() if not np.array_equal(weight, found[name])}
    assert changed
    assert not changed & given.keys()
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    before, after = (each.build(each.largest()).eval()(images) for each in (net, result.net))
    assert torch.equal(before, after)
    assert result.metrics["largest_validation_accuracy"] == result.metrics["original_validation_accuracy"]


def test_a_network_without_alternatives_cannot_be_frozen(refused: Callable[..., None]) -> None:
    refused("has no alternatives of blocks, so that nothing is left to train", freeze="original")


def ends_in_the_same_bits(net: autotailor.SuperNet, config: FinetuneConfig, folder: Path) -> None:
    """A training that is interrupted and goes on has the weights, rows and numbers of one that is not."""
    config = replace(config, checkpoint_seconds=0.0)
    whole = finetuning.finetune(net, tiny_data.splits(), config, folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(net, tiny_data.splits(fail_at=(1, 1)), config, folder / "killed")
    resumed = finetuning.finetune(net, tiny_data.splits(), config, folder / "killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert whole.history == resumed.history
    assert whole.metrics == resumed.metrics


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_an_interrupted_run_ends_in_the_same_bits(
    optimizer: str, plain_net: autotailor.SuperNet, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    ends_in_the_same_bits(plain_net, replace(finetune_config, strategy="mixed", optimizer=optimizer), tmp_path)


@pytest.mark.parametrize(
    ("strategy", "teacher"),
    [*((name, None) for name in finetuning.sampling.names() if name != "mixed"), ("mixed", "largest")],
)
def test_an_interrupted_run_ends_in_the_same_bits_whatever_is_drawn_and_teaches(
    strategy: str,
    teacher: str | None,
    plain_net: autotailor.SuperNet,
    finetune_config: FinetuneConfig,
    tmp_path: Path,
) -> None:
    ends_in_the_same_bits(plain_net, replace(finetune_config, strategy=strategy, teacher=teacher), tmp_path)


class TestAccelerator:
    """Training on CUDA: on fake tensors everywhere, and on a GPU where this machine has one."""

    def test_every_tensor_of_a_training_is_on_the_gpu(
        self,
        any_net: autotailor.SuperNet,
        tiny: DataSplits,
        finetune_config: FinetuneConfig,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        optimizer = "muon" if any_net.name == "resnet" else "adamw"
        config = replace(finetune_config, epochs=1, accelerator="cuda", gradient_norm=1.0, optimizer=optimizer)
        module, written = any_net.module(logits=True), list[dict[str, torch.Tensor]]()
        stream = Drawn(list(tiny.train.batches(0, 16)))
        for subnet in (any_net.smallest(), any_net.largest()):
            module.activate(subnet)(torch.zeros(1, 3, 32, 32))  # what NumPy computes once is known afterwards
        monkeypatch.setattr("autotailor.finetuning.training.loop.resolve", lambda name: CUDA)
        monkeypatch.setattr(Checkpoint, "write", lambda self, state: written.append(state["module"]))
        teacher = original(any_net)
        with fake_cuda(monkeypatch):
            step = sharing(module.to(CUDA), any_net, config, teacher)
            history = train(module, stream, config, step, tmp_path / "x.ckpt", "test", "test")
        assert len(history) == 1
        assert {tensor.device for tensor in written[-1].values()} == {CUDA}

    def test_statistics_and_answers_are_computed_on_the_gpu(
        self, any_net: autotailor.SuperNet, tiny: DataSplits, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        subnet, module = any_net.smallest(), any_net.module(logits=True).eval()
        calibrator = Calibrator(tiny, CalibrationConfig(images=32, batch_size=16))
        module.activate(subnet)(torch.zeros(1, 3, 32, 32))
        with fake_cuda(monkeypatch):
            module.to(CUDA)
            statistics = calibrator.statistics(module, subnet)
            assert {tensor.device for pair in statistics.values() for tensor in pair} <= {CUDA}
            assert len(finetuning.weight_sharing.evaluate(module, subnet, tiny.test, statistics).values) == 40

    def test_a_batch_that_is_left_on_the_processor_is_refused(
        self, plain_net: autotailor.SuperNet, finetune_config: FinetuneConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        step = sharing(plain_net.module(logits=True), plain_net, finetune_config)
        left = step_on(placement.CPU)
        with fake_cuda(monkeypatch):
            step._module.to(CUDA)
            with pytest.raises(RuntimeError, match="same device"):
                step(left)

    @pytest.mark.cuda
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA GPU")
    def test_a_step_on_a_gpu_is_that_of_the_processor(
        self, any_net: autotailor.SuperNet, finetune_config: FinetuneConfig
    ) -> None:
        modules = {device: any_net.module(logits=True).to(device) for device in ("cpu", "cuda")}
        steps = {device: sharing(module, any_net, finetune_config) for device, module in modules.items()}
        with deterministic(1, CUDA):  # all bits of fp32
            losses = {device: step(step_on(placement.device_of(modules[device]))) for device, step in steps.items()}
        assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-3)
        for module in modules.values():
            module.partial_gradients.hand_over()
        for ours, theirs in zip(*(step._module.parameters() for step in steps.values()), strict=True):
            assert (ours.grad is None) == (theirs.grad is None)
            if ours.grad is not None and theirs.grad is not None:
                assert theirs.grad.device.type == "cuda"
                scale = float(ours.grad.abs().max())
                torch.testing.assert_close(theirs.grad.cpu(), ours.grad, rtol=1e-3, atol=1e-3 * scale)

    @pytest.mark.cuda
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA GPU")
    @pytest.mark.parametrize("precision", ["fp32", "auto", "fp16"])
    def test_an_interrupted_run_on_a_gpu_ends_in_the_same_bits_on_the_processor(
        self,
        precision: str,
        plain_net: autotailor.SuperNet,
        tiny: DataSplits,
        finetune_config: FinetuneConfig,
        tmp_path: Path,
    ) -> None:
        config = replace(finetune_config, accelerator="cuda", precision=precision, checkpoint_seconds=0.0)
        whole = finetuning.finetune(plain_net, tiny, config, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            finetuning.finetune(plain_net, tiny_data.splits(fail_at=(1, 1)), config, tmp_path / "killed")
        resumed = finetuning.finetune(plain_net, tiny, config, tmp_path / "killed")
        assert equal(weights(whole.net), weights(resumed.net))
        assert whole.history == resumed.history
        assert whole.history[-1]["loss"] < whole.history[0]["loss"]
