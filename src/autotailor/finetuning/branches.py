"""Trains alternatives of blocks towards what the blocks say in the given network: rule ``distil``.

Every branch reads what its block reads there, and learns what the block says (AdaptiveNet, section 4.2; DNA, LANA). So
branches do not depend on each other, one pass over a batch trains all of them, and the given network stays as it is. No
labels are needed. Branches begin with their solutions in closed form (rule ``moments``), and one whose error on other
pictures did not fall keeps its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from autotailor.accuracy.calibration import as_input
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.accelerator import resolve
from autotailor.compute.placement import device_of, place
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import DistilConfig
from autotailor.finetuning.polishing.config import Round
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.precision import forward
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.steps import Step
from autotailor.finetuning.training.watch import Record, Watch, no_record
from autotailor.ir.alternatives.alternative import alternatives
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.junctions import SOURCES, branch, junctions, kind_of, selected
from autotailor.ir.supernet import SuperNet

Array = npt.NDArray[Any]
SEEN, PARTS = 128, 4
"""Most pictures on which branches are compared with their beginning; parts of the training, as epochs are counted."""


@dataclass(frozen=True)
class Part:
    """One branch.

    Attributes:
        choice: that the branch stands for, ``KIND`` or ``KIND:PARAMETER``.
        target: the tensor that the block writes.
        output: the tensor that stands in for it.
        weights: of the branch alone, by name.
    """

    choice: str
    target: str
    output: str
    weights: frozenset[str]


@dataclass(frozen=True, eq=False)
class DistilResult:
    """The SuperNet with its branches trained.

    Attributes:
        net: whose largest SubNet is the one that it was.
        errors: choice to the mean error of its branches in closed form and afterwards, on pictures of the validation
            set: the mean square of what a branch leaves of what its block says, as a share of the latter's variance.
        kept: number of branches that keep their beginning.
        history: one row for each epoch.
    """

    net: SuperNet
    errors: dict[str, tuple[float, float]]
    kept: int
    history: list[Row]


def parts_of(graph: Graph) -> list[Part]:
    """The branches of a graph with junctions that are trained here.

    Kinds whose choices are sizes of one set of weights (``Asked.nested``) are not: training one size spoils the others.
    """
    given, found = selected(graph).weights, list[Part]()
    for junction in junctions(graph):
        for position, choice in enumerate(junction.get(SOURCES)):
            if position and not alternatives()[kind_of(choice)].nested:
                read = {name for node in branch(graph, junction, position) for name in node.inputs}
                own = (read & graph.weights.keys()) - given.keys()
                found.append(Part(choice, junction.inputs[0], junction.inputs[position], frozenset(own)))
    return found


def distil(
    net: SuperNet, data: DataSplits, config: DistilConfig, workdir: str | Path, record: Record = no_record
) -> DistilResult:
    """Trains the alternatives of blocks; goes on from a checkpoint in ``workdir``.

    Args:
        net: with its alternatives in closed form.
        data: the splits; labels are not looked at.
        config: of the training.
        workdir: folder of the checkpoint.
        record: takes the metrics of each epoch.

    Raises:
        TrainingError: the loss is no longer a finite number, or the checkpoint is of another training.
    """
    parts = parts_of(net.graph)
    if not config.images or not parts:
        return DistilResult(net, {}, len(parts), [])
    device = resolve(config.accelerator)
    module = _Branches(net.graph, parts, config.precision)
    identity = fingerprint(["distil", config.identity, data.fingerprint], module.state_dict())
    stream = augmented(data, config.augmentation, config.seed)
    epochs, images = Round(1, images=config.images).parts(len(stream), PARTS, config.batch_size)
    part, config = LaterEpochs(stream, FIRST_EPOCH, images), replace(config, epochs=epochs)
    pictures = next(data.validation.batches(min(SEEN, len(data.validation))))[0]  # labels are not looked at
    with deterministic(config.threads, device):
        weights = module.arrays()
        place(module, device)
        begun = module.errors(pictures)
    path = Path(workdir) / "distil.ckpt"
    history = train(module, part, config, module.step, path, identity, "distil", Watch(record=record))
    with deterministic(config.threads, device):
        ended, trained = module.errors(pictures), module.arrays()
    kept, errors, worse = dict[str, Array](), defaultdict[str, list[tuple[float, float]]](list), 0
    for alone, before, after in zip(parts, begun, ended, strict=True):
        is_better = after < before
        worse += not is_better
        kept |= {name: (trained if is_better else weights)[name] for name in alone.weights}
        errors[alone.choice].append((before, min(before, after)))
    means = {choice: tuple(np.mean(pairs, axis=0).tolist()) for choice, pairs in sorted(errors.items())}
    return DistilResult(net.with_weights(kept), means, worse, history)


class _Branches(nn.Module):
    """The whole graph with its junctions, in evaluation mode, of which only the weights of branches are trained."""

    def __init__(self, graph: Graph, parts: Sequence[Part], precision: str) -> None:
        super().__init__()
        self._module, self._parts, self._precision = GraphModule(graph).eval(), parts, precision
        own = {name for part in parts for name in part.weights}
        for name, attribute in self._module.weight_names.items():
            if isinstance(weight := getattr(self._module, attribute), nn.Parameter):
                weight.requires_grad = name in own
        self._ends = {name for part in parts for name in (part.target, part.output)}

    def train(self, mode: bool = True) -> Self:
        """Statistics of BatchNorm stay."""
        return super().train(False)

    def arrays(self) -> dict[str, Array]:
        """Copies of all weights, by the graph's names."""
        return self._module.arrays()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The error of each branch ``[branches]`` on images ``[b, 3, R, R]``."""
        values = {self._module.graph.input: images}
        self._module.advance(values, 0, len(self._module.schedule.nodes), hold=self._ends)
        return torch.stack([_error(values[part.output], values[part.target].detach()) for part in self._parts])

    @torch.no_grad()
    def errors(self, images: torch.Tensor) -> list[float]:
        """The errors as numbers, on images of any device."""
        found: list[float] = self(as_input(images, device_of(self))).tolist()
        return found

    def step(self, batch: Step) -> float:
        """Adds the gradients of the sum of all errors."""
        loss = forward(self, batch.images, self._precision).sum()
        (loss * batch.loss_scale).backward()  # type: ignore[no-untyped-call]
        value: float = loss.item()
        return value / len(self._parts)


def _error(said: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (said - target).square().mean() / target.var().clamp_min(torch.finfo(target.dtype).tiny)
