"""Trains alternatives of blocks towards what the blocks say in the given network, each alone: rule ``distil``.

Every branch reads what its block reads there, and learns what the block says (AdaptiveNet, section 4.2; DNA, LANA). So
branches do not depend on each other, one pass over a batch trains all of them, and the given network stays as it is. No
labels are needed. Branches begin with their solutions in closed form (rule ``moments``), and one whose error on other
pictures did not fall keeps its beginning.

What a branch has learnt depends on nothing but the given network, its beginning, the pictures and the configuration. So
it lies in a file of its own for later rules, named by these, and a space with one more alternative trains that one.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Collection, Mapping, Sequence
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
from autotailor.artifacts import atomic, swept
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
from autotailor.ir.graph import Graph, Node
from autotailor.ir.junctions import ORIGINAL, SOURCES, branch, junctions, kind_of, selected

Array = npt.NDArray[Any]
SEEN, PARTS = 128, 4
"""Most pictures on which branches are compared with their beginning; parts of the training, as epochs are counted."""
VERSION, ERRORS = "branches 1", ":errors"
"""Of what files of branches say, and the name of the errors in them."""


@dataclass(frozen=True)
class Part:
    """One branch.

    Attributes:
        choice: that the branch stands for, ``KIND`` or ``KIND:PARAMETER``.
        target: the tensor that the block writes.
        output: the tensor that stands in for it.
        nodes: that are there for it alone.
        weights: names of these nodes' own.
    """

    choice: str
    target: str
    output: str
    nodes: tuple[Node, ...]
    weights: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a branch has learnt.

    Attributes:
        weights: of the branch, by name; those of its beginning where it was not better afterwards.
        before: its error in closed form.
        after: its error when it was trained.
    """

    weights: Mapping[str, Array]
    before: float
    after: float

    @property
    def is_better(self) -> bool:
        """Whether the error fell; an error that is no number did not."""
        return self.after < self.before


class Alternatives(nn.Module):
    """A network in evaluation mode, of which only the weights of alternatives are trained.

    Args:
        module: with its alternatives.
        own: names of the weights that are trained.
        precision: in which convolutions are computed (``training.precision``).
    """

    def __init__(self, module: GraphModule, own: Collection[str], precision: str) -> None:
        super().__init__()
        self._module, self._precision = module.eval(), precision
        module.train_only(own)

    def train(self, mode: bool = True) -> Self:
        """Statistics of BatchNorm stay."""
        return super().train(False)

    def arrays(self) -> dict[str, Array]:
        """Copies of all weights, by the graph's names."""
        return self._module.arrays()

    def step(self, batch: Step) -> float:
        """Adds the gradients of the sum of all errors that ``forward`` returns; returns their mean."""
        errors = forward(self, batch.images, self._precision)
        loss = errors.sum()
        (loss * batch.loss_scale).backward()  # type: ignore[no-untyped-call]
        value: float = loss.item()
        return value / len(errors)


def is_trained(choice: object) -> bool:
    """Whether what stands behind a choice of a block's operator is trained here; sizes of nested weights are not."""
    return choice != ORIGINAL and not alternatives()[kind_of(choice)].nested


def parts_of(graph: Graph) -> list[Part]:
    """The branches of a graph with junctions that are trained here.

    Kinds whose choices are sizes of one set of weights (``Asked.nested``) are not: training one size spoils the others.
    """
    given, parts = selected(graph).weights, list[Part]()
    written = {node.inputs[0]: node.outputs[0] for node in reversed(junctions(graph))}
    for junction in junctions(graph):
        target = junction.inputs[0]
        while target in written:  # what stands behind all junctions of a block
            target = written[target]
        for position, choice in enumerate(junction.get(SOURCES)):
            if position and is_trained(choice):
                nodes = branch(graph, junction, position)
                read = {name for node in nodes for name in node.inputs}
                own = (read & graph.weights.keys()) - given.keys()
                parts.append(Part(choice, target, junction.inputs[position], nodes, tuple(sorted(own))))
    return parts


@dataclass(frozen=True, eq=False)
class Alone:
    """Branches that were trained each by itself.

    Attributes:
        learnt: what each has learnt.
        reused: number of branches that an earlier rule has trained.
        history: one row for each epoch; none where all are known.
    """

    learnt: Mapping[Part, Learnt]
    reused: int
    history: list[Row]

    @property
    def weights(self) -> dict[str, Array]:
        """Of all branches, by name."""
        return {name: weight for each in self.learnt.values() for name, weight in each.weights.items()}


def train_alone(
    graph: Graph,
    parts: Sequence[Part],
    data: DataSplits,
    config: DistilConfig,
    workdir: Path,
    record: Record = no_record,
    store: Path | None = None,
) -> Alone:
    """Trains each branch beside its block; goes on from a checkpoint in ``workdir``.

    Args:
        graph: with its alternatives in closed form.
        parts: its branches.
        data: the splits; labels are not looked at.
        config: of the training.
        workdir: folder of the checkpoint.
        record: takes the metrics of each epoch.
        store: folder of what branches have learnt in earlier runs; without one all are trained.

    Raises:
        TrainingError: the loss is no longer a finite number, or the checkpoint is of another training.
    """
    files = _files(graph, parts, [config.identity, data.fingerprint], store)
    learnt = {part: earlier for part in parts if (earlier := _read(files.get(part), part))}
    reused, unknown, history = len(learnt), [part for part in parts if part not in learnt], list[Row]()
    if unknown:
        trained, history = _train(graph, unknown, data, config, workdir, record)
        learnt |= trained
    for part in unknown:
        if part in files:
            _write(files[part], learnt[part])
    return Alone({part: learnt[part] for part in parts}, reused, history)


def _train(
    graph: Graph, parts: list[Part], data: DataSplits, config: DistilConfig, workdir: Path, record: Record
) -> tuple[dict[Part, Learnt], list[Row]]:
    """Trains branches beside each other; what each has learnt, and one row for each epoch."""
    device = resolve(config.accelerator)
    module, pictures = _Branches(graph, parts, config.precision), seen(data)
    with deterministic(config.threads, device):
        weights = module.arrays()
        begun = place(module, device).errors(pictures)
    history = learn(module, data, config, workdir / "distil.ckpt", FIRST_EPOCH, record)
    with deterministic(config.threads, device):
        ended, trained = module.errors(pictures), module.arrays()
    learnt = dict[Part, Learnt]()
    for alone, before, after in zip(parts, begun, ended, strict=True):
        taken = trained if after < before else weights
        learnt[alone] = Learnt({name: taken[name] for name in alone.weights}, before, after)
    return learnt, history


def seen(data: DataSplits) -> torch.Tensor:
    """The validation pictures on which alternatives are compared with their beginning; labels are not looked at."""
    return next(data.validation.batches(min(SEEN, len(data.validation))))[0]


def learn(
    module: Alternatives, data: DataSplits, config: DistilConfig, path: Path, first: int, record: Record
) -> list[Row]:
    """Trains a module where it is, on ``config.images`` pictures; goes on from a checkpoint of the same training.

    Args:
        module: with its alternatives.
        data: the splits.
        config: of the training.
        path: of the checkpoint, named after the training.
        first: number of the first epoch that is read.
        record: takes the metrics of each epoch.

    Returns:
        One row for each epoch.
    """
    stream = augmented(data, config.augmentation, config.seed)
    epochs, images = Round(1, images=config.images).parts(len(stream), PARTS, config.batch_size)
    identity = fingerprint([path.stem, config.identity, data.fingerprint], module.state_dict())
    part, config = LaterEpochs(stream, first, images), replace(config, epochs=epochs)
    return train(module, part, config, module.step, path, identity, path.stem, Watch(record=record))


def _files(graph: Graph, parts: Sequence[Part], training: Sequence[str], store: Path | None) -> dict[Part, Path]:
    """The file of each branch; its name follows from all that the branch's training depends on."""
    if store is None:
        return {}
    given = fingerprint([VERSION, *training], _tensors(selected(graph).weights))
    begun = {part: _tensors({name: graph.weights[name] for name in part.weights}) for part in parts}
    folder = swept(store)
    return {part: folder / f"{fingerprint([given, part.target, repr(part.nodes)], begun[part])}.npz" for part in parts}


def _tensors(weights: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(weight) for name, weight in sorted(weights.items())}


def _read(path: Path | None, part: Part) -> Learnt | None:
    """What a branch has learnt in an earlier run; None where no file says it, or a file is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        if path:
            with np.load(path, allow_pickle=False) as content:
                before, after = content[ERRORS].tolist()
                learnt = Learnt({name: content[name] for name in part.weights}, before, after)
            os.utime(path)
            return learnt
    return None


def _write(path: Path, learnt: Learnt) -> None:
    with contextlib.suppress(OSError):  # a full disk, or a folder that nobody may write
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as unfinished:
            arrays: dict[str, Any] = {**learnt.weights, ERRORS: np.array([learnt.before, learnt.after])}
            np.savez(unfinished, **arrays)


class _Branches(Alternatives):
    """What blocks and branches need."""

    def __init__(self, graph: Graph, parts: Sequence[Part], precision: str) -> None:
        ends = list(dict.fromkeys(name for part in parts for name in (part.target, part.output)))
        module = GraphModule(selected(replace(graph, outputs=tuple(ends))))
        super().__init__(module, {name for part in parts for name in part.weights}, precision)
        self._parts, self._ends = parts, ends

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The error of each branch ``[branches]`` on images ``[b, 3, R, R]``."""
        values = dict(zip(self._ends, self._module(images), strict=True))
        return torch.stack([left(values[part.output], values[part.target].detach()) for part in self._parts])

    @torch.no_grad()
    def errors(self, images: torch.Tensor) -> list[float]:
        """The errors as numbers, on images of any device."""
        errors: list[float] = self(as_input(images, device_of(self))).tolist()
        return errors


def left(said: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean square of what ``said`` leaves of ``target``, as a share of the latter's variance."""
    return (said - target).square().mean() / target.var().clamp_min(torch.finfo(target.dtype).tiny)
