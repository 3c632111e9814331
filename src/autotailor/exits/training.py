"""Training of heads alone, on a network that stays as it is.

A head begins as a least-squares answer: of its pooled input to the network's own logits on training pictures. Then it
learns labels and the network's answers, as the configuration of polishing says, on the pictures that polishing saw.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.compute.accelerator import resolve
from autotailor.compute.placement import device_of, put_images
from autotailor.data import DataSplits
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import sized
from autotailor.exits.config import ExitsConfig
from autotailor.exits.heads import Exit, initial, trunk
from autotailor.finetuning.lesson import lesson_of, teacher_alone
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.steps import Step
from autotailor.ir.execution.head import find_head
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.task.registry import of

logger = logging.getLogger(__name__)
SOLVED = 2048
"""Training pictures from which heads begin."""
RIDGE = 0.01
DROPOUT = 0.2


class Head(nn.Module):
    """A head in training: ``[b, ...]`` to logits ``[b, classes]``. It reads its input divided by fixed scales."""

    scale: torch.Tensor
    kernel: nn.Parameter
    shift: nn.Parameter
    weight: nn.Parameter
    bias: nn.Parameter

    def __init__(self, place: Exit, kind: str, classes: int, seed: int) -> None:
        super().__init__()
        arrays = initial(place, kind, classes, np.random.default_rng(seed))
        self._place = place
        self.register_buffer("scale", torch.ones(place.channels))
        for name, array in arrays.items():
            self.register_parameter(name, nn.Parameter(torch.from_numpy(array)))

    @property
    def is_full(self) -> bool:
        """Whether the head has a convolution."""
        return "kernel" in self._parameters

    def pooled(self, x: torch.Tensor) -> torch.Tensor:
        """What the linear map reads, ``[b, channels]``."""
        shape = [-1 if axis == self._place.axis else 1 for axis in range(x.ndim)]
        x = x / self.scale.reshape(shape)
        if self.is_full:
            x = nn.functional.conv2d(x, self.kernel, self.shift, stride=2, padding=1).relu()
        return x.mean(dim=self._place.others)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        row = self.pooled(x)
        if self.is_full:
            row = nn.functional.dropout(row, DROPOUT, self.training)
        return nn.functional.linear(row, self.weight, self.bias)

    @torch.no_grad()
    def measure(self, x: torch.Tensor) -> None:
        """Takes the scales of the head's channels from some inputs."""
        scale = x.transpose(1, self._place.axis).flatten(2).square().mean(dim=(0, 2)).sqrt()
        self.scale.copy_(scale.clamp_min(1e-3 * float(scale.max())))

    @torch.no_grad()
    def solve(self, rows: torch.Tensor, logits: torch.Tensor) -> None:
        """Takes the linear map that comes closest to logits ``[n, classes]`` from pooled inputs ``[n, channels]``."""
        centre, middle = rows.mean(0), logits.mean(0)
        x, y = (rows - centre).double(), (logits - middle).double()
        gram = x.T @ x
        gram += RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        weight = torch.linalg.solve(gram, x.T @ y).T.float()
        self.weight.copy_(weight)
        self.bias.copy_(middle - weight @ centre)

    def arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The head's weights for a graph, with the scales in them."""
        weights = {name: value.detach().cpu().numpy().copy() for name, value in self.named_parameters()}
        scale, name = self.scale.cpu().numpy(), "kernel" if self.is_full else "weight"
        weights[name] = weights[name] / scale.reshape([1, -1, *[1] * (weights[name].ndim - 2)])
        return weights


class _Lesson:
    """One step for all heads: each learns alone, because they share no weights."""

    def __init__(self, network: GraphModule, heads: Sequence[Head], data: DataSplits, config: PolishConfig) -> None:
        graph = network.graph
        self._network, self._heads, self._side = network, heads, graph.shapes[graph.input][-1]
        self._task, self._taught = of(data.validation), lesson_of(teacher_alone(config, data), False)

    @torch.no_grad()
    def shown(self, images: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """What heads read, and the network's logits."""
        outputs = self._network(sized(images, self._side))
        return list(outputs[:-1]), outputs[-1].flatten(1)

    def __call__(self, batch: Step) -> float:
        features, logits = self.shown(batch.images)
        losses = [
            self._task.loss(head(x), batch.labels, logits, self._taught)
            for head, x in zip(self._heads, features, strict=True)
        ]
        loss = torch.stack(losses).sum()
        (loss * batch.loss_scale).backward()  # type: ignore[no-untyped-call]
        return loss.item() / len(losses)


def train_heads(
    graph: Graph, places: Sequence[Exit], data: DataSplits, config: ExitsConfig, polish: PolishConfig, folder: Path
) -> list[dict[str, npt.NDArray[np.float32]]]:
    """The weights of a head at each place of a network, which itself stays as it is.

    Args:
        graph: of the network.
        places: of the heads.
        data: whose training pictures teach.
        config: of the exits.
        polish: of the run, for augmentation, distillation, batches and seed.
        folder: of checkpoints.

    Raises:
        TrainingError: the loss is no finite number.
    """
    settings = _settings(config, polish, data)
    network = GraphModule(trunk(graph, places)).eval().requires_grad_(False)
    network.fold([place.tensor for place in places])
    classes = graph.shapes[graph.output][-1]
    heads = [Head(place, config.head, classes, settings.seed + at) for at, place in enumerate(places)]
    accelerator = resolve(settings.accelerator)
    for module in (network, *heads):
        module.to(accelerator)
    lesson, stream = _Lesson(network, heads, data, settings), augmented(data, settings.augmentation, settings.seed)
    _begin(heads, lesson, LaterEpochs(stream, FIRST_EPOCH), settings.batch_size)
    part = LaterEpochs(stream, FIRST_EPOCH + 1, -(-config.images // settings.epochs))
    identity = f"{settings.identity} {config.head} {[place.tensor for place in places]} {find_head(graph).outputs}"
    title = f"exits of {graph.name}"
    if config.images:
        train(nn.ModuleList(heads), part, settings, lesson, folder / "heads.ckpt", identity, title)
    return [head.arrays() for head in heads]


def _settings(config: ExitsConfig, polish: PolishConfig, data: DataSplits) -> PolishConfig:
    """The parameters of polishing with those of heads, which begin far from where they end."""
    epochs = max(1, math.ceil(config.images / len(data.train)))
    plain = replace(polish.augmentation, mixup=0.0, cutmix=0.0)
    return replace(
        polish,
        epochs=epochs,
        lr=config.lr,
        ema=0.0,
        optimizer="adamw",
        processes=1,
        nodes=1,
        precision="fp32",
        augmentation=plain,
    )


@torch.no_grad()
def _begin(heads: Sequence[Head], lesson: _Lesson, stream: LaterEpochs, batch_size: int) -> None:
    """Solves the linear maps of all heads."""
    rows: list[list[torch.Tensor]] = [[] for _ in heads]
    logits = []
    device = device_of(heads[0])
    for number, (images, _) in enumerate(islice(stream.batches(0, batch_size), -(-SOLVED // batch_size))):
        features, batch_logits = lesson.shown(put_images(images, device))
        for head, x, kept in zip(heads, features, rows, strict=True):
            if number == 0:
                head.measure(x)
            kept.append(head.pooled(x))
        logits.append(batch_logits)
    for head, kept in zip(heads, rows, strict=True):
        head.solve(torch.cat(kept), torch.cat(logits))
