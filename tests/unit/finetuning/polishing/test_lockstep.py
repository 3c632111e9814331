"""SubNets trained side by side: each as if it were alone, and as a loop of plain PyTorch trains it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import autotailor
from autotailor.accuracy.determinism import deterministic
from autotailor.data import DataSplits, resize
from autotailor.finetuning import TrainingError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.steps import Step
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.task import find
from training import close, equal, without_norm


def students(net: autotailor.SuperNet) -> list[GraphModule]:
    return [GraphModule(net.slice(subnet), logits=True) for subnet in (net.smallest(), net.largest())]


def trained(
    net: autotailor.SuperNet, data: DataSplits, config: PolishConfig, path: Path, modules: list[nn.Module]
) -> list[dict[str, torch.Tensor]]:
    """The weights of modules after one round; images have 20 pixels for all of them."""
    teacher = Teacher(net.build(net.largest(), logits=True), 32)
    step = Lockstep(modules, [20] * len(modules), teacher, config, find("classification"))
    train(nn.ModuleList(modules), data.train, config.of_round(0), step, path, "test", "polish")
    step.close()
    return [module.state_dict() for module in modules]


@pytest.mark.parametrize("gradient_norm", [0.0, 0.05])
def test_who_is_trained_beside_a_subnet_and_in_how_many_threads_changes_nothing(
    gradient_norm: float, resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    config = replace(config, gradient_norm=gradient_norm)
    alone = trained(resnet_net, tiny, config, tmp_path / "a", students(resnet_net)[:1])
    beside = trained(resnet_net, tiny, replace(config, workers=3), tmp_path / "b", students(resnet_net))
    assert equal(alone[0], beside[0])
    assert not equal(alone[0], students(resnet_net)[0].state_dict())


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.sweep)])
def test_compiled_subnets_learn_the_same_and_stop_and_go_on_with_the_same_bits(
    backend: str,
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    plain = trained(resnet_net, tiny, config, tmp_path / "a", students(resnet_net))
    config = replace(config, compile=True, workers=2)
    compiled = trained(resnet_net, tiny, config, tmp_path / "b", students(resnet_net))
    for one, other in zip(plain, compiled, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-5)
    with monkeypatch.context() as broken:
        broken.setattr(Lockstep, "clip", stop_at(2))
        with pytest.raises(KeyboardInterrupt):
            trained(resnet_net, tiny, replace(config, checkpoint_seconds=0), tmp_path / "c", students(resnet_net))
    again = trained(resnet_net, tiny, replace(config, checkpoint_seconds=0), tmp_path / "c", students(resnet_net))
    for one, other in zip(compiled, again, strict=True):
        assert equal(one, other)


def stop_at(step: int) -> Callable[[Lockstep], None]:
    """Takes the place of ``Lockstep.clip``: interrupts the training in a step, counted from 0."""
    seen = count()

    def clip(_: Lockstep) -> None:
        if next(seen) == step:
            raise KeyboardInterrupt

    return clip


def test_a_subnet_is_trained_as_plain_pytorch_trains_it(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    module = students(resnet_net)[0]
    by_hand, teacher = copy.deepcopy(module), resnet_net.build(resnet_net.largest(), logits=True)
    (ours,) = trained(resnet_net, tiny, config, tmp_path / "a", [module])
    decayed = [p for p in by_hand.parameters() if p.ndim > 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed}, {"params": [p for p in by_hand.parameters() if p.ndim <= 1], "weight_decay": 0.0}],
        weight_decay=config.weight_decay,
    )
    steps, weight = 3, config.distillation.weight
    with deterministic(1):
        for number, (images, labels) in enumerate(tiny.train.batches(0, 16)):
            rate = min(1.0, (number + 1) / (config.warmup * steps)) * 0.5 * (1 + math.cos(math.pi * number / steps))
            for group in optimizer.param_groups:
                group["lr"] = config.lr * rate
            with torch.no_grad():
                targets = teacher(images).softmax(1)
            logits = by_hand.train()(resize(images, 20))
            soft = functional.kl_div(logits.log_softmax(1), targets, reduction="batchmean")
            hard = functional.cross_entropy(logits, labels, label_smoothing=config.label_smoothing)
            optimizer.zero_grad()
            ((1 - weight) * hard + weight * soft).backward()
            optimizer.step()
    for name, value in by_hand.state_dict().items():
        torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("gradient_norm", [0.0, 0.05])
def test_without_batch_norm_micro_batches_change_only_the_rounding(
    gradient_norm: float, resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    config = replace(config, gradient_norm=gradient_norm, optimizer="sgd", lr=0.1)
    whole, parts = (
        trained(resnet_net, tiny, replace(config, micro_batch=size), tmp_path / str(size), [without_norm()])
        for size in (0, 5)
    )
    assert close(whole[0], parts[0])
    assert not equal(whole[0], parts[0])


def test_gradients_are_scaled_down_to_the_norm(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    before, moved = without_norm().state_dict(), []
    for norm in (0.0, 1e-3):
        changed = replace(config, gradient_norm=norm, optimizer="sgd", lr=0.1, weight_decay=0.0)
        (after,) = trained(resnet_net, tiny, changed, tmp_path / str(norm), [without_norm()])
        moved.append(max(float((after[name] - value).abs().max()) for name, value in before.items()))
    assert 0 < moved[1] < 1e-2 * moved[0]


class Diverging(nn.Module):
    """Logits that are no numbers."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((1, classes), torch.nan))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean((1, 2, 3)).reshape(-1, 1) * self.scale


def test_a_subnet_that_diverges_does_not_disturb_the_others(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    alone = trained(resnet_net, tiny, config, tmp_path / "a", students(resnet_net)[:1])
    both: list[nn.Module] = [*students(resnet_net)[:1], Diverging(tiny.num_classes)]
    assert equal(alone[0], trained(resnet_net, tiny, config, tmp_path / "b", both)[0])


class OverflowsOnce(nn.Module):
    """A SubNet that sees one picture of infinite values, in one step, counted from 1."""

    def __init__(self, student: nn.Module, step: int) -> None:
        super().__init__()
        self.student, self._left = student, step

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self._left -= self.training
        if self._left == 0:
            images = torch.cat([torch.full_like(images[:1], torch.inf), images[1:]])
        return self.student(images)


def test_one_overflow_leaves_the_statistics_of_before(
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    both: list[nn.Module] = students(resnet_net)
    alone = trained(resnet_net, tiny, config, tmp_path / "a", students(resnet_net)[:1])
    beside, found = trained(resnet_net, tiny, config, tmp_path / "b", [both[0], OverflowsOnce(both[1], 2)])
    assert equal(alone[0], beside)
    assert all(value.isfinite().all() for value in found.values())
    assert caplog.text.count("polish: SubNet 2 of 2 takes no step on images for which its loss is nan") == 1


def test_training_ends_with_an_error_where_every_subnet_diverges(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="loss became nan"):
        trained(resnet_net, tiny, config, tmp_path / "a", [Diverging(tiny.num_classes)])


def test_a_teacher_of_lengths_sees_images_of_each_students_size(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig
) -> None:
    """A student that is its teacher has nothing to learn, at whatever size, and classes do not depend on the size."""
    pixels, labels = next(iter(tiny.train.batches(0, 8)))
    batch = Step(torch.as_tensor(pixels).float(), torch.as_tensor(labels), np.random.default_rng(0), 0.0)
    for task, is_taught_at_its_size in (("detection", True), ("outputs", False)):
        networks = [GraphModule(resnet_net.slice(resnet_net.largest()), logits=True) for _ in range(2)]
        teacher = Teacher(resnet_net.build(resnet_net.largest(), logits=True), 32)
        plain = replace(config, frozen=True, features=0.0, streams=0.0)
        step = Lockstep(networks, [20, 24], teacher, plain, find(task))
        apart = step.losses(batch)
        assert step(batch) == pytest.approx(sum(apart) / 2, abs=1e-5)
        step.close()
        assert [loss < 1e-9 for loss in apart] == [is_taught_at_its_size] * 2
