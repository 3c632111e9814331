"""What tests let several processes do together; the same functions with one process give what is expected."""

import copy
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn

import autotailor
import networks
import tiny_data
import training
from autotailor import finetuning
from autotailor.accuracy import CalibrationConfig
from autotailor.compute.placement import CPU
from autotailor.data import DataSplits
from autotailor.data.splits import WHOLE, Batch, Shard
from autotailor.finetuning import FinetuneConfig, TrainingError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing import PolishConfig, Round, polish
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.training import micro_batches
from autotailor.finetuning.training.processes.batch_norm import Synchronised
from autotailor.finetuning.training.processes.group import Messages, join
from autotailor.finetuning.training.processes.team import Team
from autotailor.finetuning.training.states.checkpoint import Checkpoint
from autotailor.finetuning.training.steps import Step
from autotailor.ir.errors import AutoTailorError
from autotailor.task import find

FINETUNE = FinetuneConfig(
    epochs=2,
    batch_size=16,
    calibration=CalibrationConfig(images=32, batch_size=16),
    subnets=3,
    accept_chance=True,
    checkpoint_seconds=0.0,
    panel=finetuning.config.PanelConfig(every=1, images=40, subnets=2),
)
POLISH = PolishConfig(
    rounds=(Round(1, 1), Round(1, 2)),
    batch_size=16,
    optimizer="sgd",  # which does not divide gradients by their size, so that rounding stays small
    lr=0.01,
    teacher="largest",
    checkpoint_seconds=0.0,
    calibration=CalibrationConfig(images=32, batch_size=16),
)
State = dict[str, torch.Tensor]
LAYERS = {
    "of images": (nn.BatchNorm2d(3), (8, 3, 5, 4)),
    "of vectors": (nn.BatchNorm1d(3), (8, 3)),
    "without gain and shift": (nn.BatchNorm2d(3, affine=False), (8, 3, 5, 4)),
    "without running averages": (nn.BatchNorm2d(3, track_running_stats=False), (8, 3, 5, 4)),
}


def normalised(
    kind: str, processes: int, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor, State]:
    """Result, gradient for the input, and the layer's gradients and running averages, on this process's part."""
    group = join(replace(training.PRETRAIN, processes=processes))
    layer, shape = copy.deepcopy(LAYERS[kind])
    random = torch.Generator().manual_seed(0)
    whole, direction = (2 + torch.randn(shape, generator=random) * 3 for _ in range(2))
    whole = whole * torch.linspace(1, 2, len(whole)).reshape(
        -1, *[1] * (whole.ndim - 1)
    )  # the parts have other statistics
    x = group.shard.of(whole).to(dtype).clone().requires_grad_(True)
    with Synchronised(Messages(group, 6, CPU)) if processes > 1 else torch.enable_grad():
        layer(x.detach())
        result = layer.train()(x)
    (result.float() * group.shard.of(direction)).sum().backward()
    assert x.grad is not None
    state = dict(layer.named_buffers()) | {name: p.grad for name, p in layer.named_parameters() if p.grad is not None}
    return result.detach(), x.grad, state


class Interrupted(tiny_data.TinyStream):
    """A stream that kills or terminates one process, or all by KeyboardInterrupt, in front of a batch."""

    def __init__(self, at: tuple[int, int], rank: int | None, number: int) -> None:
        super().__init__()
        self.at, self.rank, self.number = at, rank, number

    def shards(self, epoch: int, batch_size: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Batch]:
        for number, batch in enumerate(super().shards(epoch, batch_size, start, shard), start):
            if (epoch, number) == self.at and self.rank is None:
                raise KeyboardInterrupt
            if (epoch, number) == self.at and shard.number == self.rank:
                os.kill(os.getpid(), self.number)
            yield batch


def data(at: tuple[int, int] | None = None, rank: int | None = None, number: int = signal.SIGKILL) -> DataSplits:
    """The tiny data, with a stream that ends processes at an epoch and batch."""
    return tiny_data.splits() if at is None else replace(tiny_data.splits(), train=Interrupted(at, rank, number))


def smooth() -> nn.Module:
    """A network with BatchNorm and no kinks, in which rounding stays as small as it is."""
    torch.manual_seed(0)
    layers = [[nn.Conv2d(a, 8, 3, 2, bias=False), nn.BatchNorm2d(8), nn.GELU()] for a in (3, 8, 8)]
    return nn.Sequential(*(part for layer in layers for part in layer), nn.Flatten(), nn.Linear(72, 5))


def pretrained(workdir: Path, processes: int, given: DataSplits | None = None, **changes: Any) -> Any:
    """Weights, history and metrics of a training; an error's type and text where the training ends with one."""
    config = replace(training.PRETRAIN, processes=processes, **changes)
    return attempt(lambda: finetuning.pretrain(smooth(), given or data(), config, workdir))


def compiled(folder: Path) -> Path:
    """A file with a small SuperNet, compiled once for all processes."""
    torch.manual_seed(0)
    network = networks.TinyResNet().eval()
    for part in list(network.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.ReLU):
                setattr(part, name, nn.SiLU())  # without kinks, in which rounding grows
    net = autotailor.compile(network, networks.SPACES["resnet"], name="smooth", resolution=32)
    net.save(folder / "smooth.pt")
    return folder / "smooth.pt"


def finetuned(net: Path, workdir: Path, processes: int, given: DataSplits | None = None, **changes: Any) -> Any:
    """The same for the weight-shared training of a SuperNet."""
    config = replace(FINETUNE, processes=processes, **changes)
    return attempt(lambda: finetuning.finetune(autotailor.load(net), given or data(), config, workdir))


def polished(net: Path, workdir: Path, processes: int, given: DataSplits | None = None, **changes: Any) -> Any:
    """Weights of all SubNets of a race, no history, and the table; SubNets inherit little, so that all are trained."""
    config = replace(POLISH, processes=processes, **changes)
    supernet = autotailor.load(net)
    random = np.random.default_rng(3)
    subnets = list(dict.fromkeys([supernet.smallest(), *(supernet.sample(random) for _ in range(2))]))
    inherited = {subnet.id: -1.0 - place for place, subnet in enumerate(subnets)}
    contests = {f"budget_{place}": [subnet] for place, subnet in enumerate(subnets)}

    def race() -> Any:
        found, table = polish(supernet, supernet, given or data(), contests, inherited, config, workdir)
        own = {
            f"{budget}.{name}": torch.from_numpy(weight)
            for budget, one in found.items()
            for name, weight in (one.weights or {}).items()
        }
        return SimpleNamespace(state_dict=own, history=[], metrics=table.dropna(axis="columns").to_dict("list"))

    return attempt(race)


def left_by_terminated(workdir: Path, processes: int) -> bool:
    """Whether a checkpoint is there when a process ends because of SIGTERM; to write it takes a second."""
    write = Checkpoint.write

    def slowly(checkpoint: Checkpoint, state: Mapping[str, Any]) -> None:
        time.sleep(1.0)
        write(checkpoint, state)

    with mock.patch.object(Checkpoint, "write", slowly):
        ended = pretrained(workdir, processes, data((1, 1), 0, signal.SIGTERM), checkpoint_seconds=1000.0)
    assert ended == ("SystemExit", str(128 + signal.SIGTERM))
    return (workdir / "pretrain.ckpt").is_file()


class Breaking(nn.Module):
    """The smooth network, whose logits are no numbers where ``breaks`` is true."""

    def __init__(self, breaks: bool) -> None:
        super().__init__()
        self.breaks, self.inner = breaks, smooth()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.inner(images)
        return logits * math.nan if self.breaks else logits


def broken(processes: int, breaks: bool = True) -> tuple[list[bool], list[bool]]:
    """Which of two SubNets take a step, and whether the loss is a number; the second breaks in the last process."""
    group = join(replace(POLISH, processes=processes))
    students = [Breaking(False), Breaking(breaks and group.rank == processes - 1)]
    config = replace(POLISH, processes=processes)
    step = Lockstep(students, [0, 0], Teacher(smooth(), 0), config, find("classification"))
    both = nn.ModuleList(students).train()
    images, labels = tiny_data.draw(8, 7)
    batch = Step(group.shard.of(images), group.shard.of(labels), 0.0, np.random.default_rng(0), 1 / group.size)
    agreed = micro_batches.MicroBatches(both, step, 0, "test", Team(group, both, CPU)).gradients(batch, 0)
    step.clip()
    taken = [all(p.grad is not None for p in student.parameters()) for student in students]
    return taken, [agreed.loss is not None and math.isfinite(agreed.loss)] * processes


def attempt(train: Any) -> Any:
    """What a training gives, in a form that can be sent to another process."""
    try:
        result = train()
    except (AutoTailorError, KeyboardInterrupt, SystemExit) as error:
        return type(error).__name__, str(error)
    weights = result.state_dict if hasattr(result, "state_dict") else training.weights(result.net)
    return weights, result.history, result.metrics


def agreed() -> dict[str, Any]:
    """What two processes agree on whose gradients are 1 and 2."""
    group = join(replace(training.PRETRAIN, processes=2))
    layer = nn.Linear(2, 2)
    team = Team(group, layer, CPU)
    layer.weight.grad = torch.full((2, 2), 1.0 + group.rank)
    found: dict[str, Any] = {"agreed": team.agree(1.0 + group.rank, (0, 15)[group.rank])}
    team.add_gradients()
    found["gradients"] = [layer.weight.grad.flatten().tolist(), layer.bias.grad]
    if group.rank:
        layer.bias.grad = torch.zeros(2)
    for name, call in {
        "parameters": lambda: team.agree(1.0),
        "same": lambda: team.check_same("steps", [group.rank], "look"),
    }.items():
        try:
            call()
        except TrainingError as error:
            found[name] = str(error)
    return found


class Small(nn.Module):
    """The smooth network, with memory for ``most`` images."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.inner = most, smooth()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.inner(images)
        if len(images) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return logits


def halved(processes: int, most: int) -> tuple[list[torch.Tensor], int, str]:
    """Gradients of a step for which the last process has memory for few images; the size of passes, and what was said.

    One process alone normalises the same passes: images 0, 1, 4 and 5, and then 2, 3, 6 and 7.
    """
    group = join(replace(training.PRETRAIN, processes=processes))
    network = Small(most if group.rank == processes - 1 else 100).train()
    said: list[str] = []
    micro_batches.logger.addFilter(lambda record: said.append(record.getMessage()) or True)

    def step(batch: Step) -> float:
        loss = nn.functional.cross_entropy(network(batch.images), batch.labels)
        (loss * batch.loss_scale).backward()
        return loss.item()

    images, labels = tiny_data.draw(8, 7)
    if processes == 1:
        images, labels = (torch.cat([x[0:2], x[4:6], x[2:4], x[6:8]]) for x in (images, labels))
    team = Team(group, network, CPU)
    micro = micro_batches.MicroBatches(network, step, 4 if processes == 1 else 0, "test", team)
    batch = Step(group.shard.of(images), group.shard.of(labels), 0.0, np.random.default_rng(0), 1 / group.size)
    micro.gradients(batch, 0)
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    return gradients, micro.size, " ".join(said)
