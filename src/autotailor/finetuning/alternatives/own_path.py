"""Trains alternatives of blocks where SubNets have them: the second part of the rule ``distil``.

In a SubNet an alternative reads what alternatives before it say, and not what the given network says there. Each step
draws a SubNet, with the other sizes as given, and what all of its blocks say is brought nearer to what they say in the
given network (AdaptiveNet, equation 1). The gradient goes through the blocks before, so that an alternative also learns
what later ones bear. The given network stays; where SubNets are on average no nearer than before, all weights do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from autotailor.accuracy.calibration import as_input
from autotailor.accuracy.determinism import deterministic
from autotailor.compute.accelerator import resolve
from autotailor.compute.placement import device_of, place
from autotailor.data.splits import DataSplits
from autotailor.finetuning.alternatives.branches import Alternatives, Part, is_trained, learn, left, parts_of, seen
from autotailor.finetuning.config import DistilConfig
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.steps import Step
from autotailor.finetuning.training.watch import Record, no_record
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

JUDGED = 16
"""SubNets on which alternatives are compared with what they were."""
READ = FIRST_EPOCH + 1_000
"""Number of the first epoch that is read here; branches alone have read the ones before."""


@dataclass(frozen=True, eq=False)
class PathResult:
    """Alternatives that were trained where SubNets have them.

    Attributes:
        net: whose largest SubNet is the one that it was.
        before, after: what the blocks of drawn SubNets leave of what they say in the given network, on pictures of the
            validation set, as a share of its variance.
        history: one row for each epoch.
    """

    net: SuperNet
    before: float
    after: float
    history: list[Row]


def train_on_path(
    net: SuperNet, data: DataSplits, config: DistilConfig, workdir: Path, record: Record = no_record
) -> PathResult:
    """Trains the alternatives of random SubNets on ``config.images`` pictures; goes on from a checkpoint.

    Args:
        net: whose alternatives have learnt alone.
        data: the splits; labels are not looked at.
        config: of the training.
        workdir: folder of the checkpoint.
        record: takes the metrics of each epoch.

    Raises:
        TrainingError: the loss is no longer a finite number.
    """
    device = resolve(config.accelerator)
    parts = parts_of(net.graph)
    module, pictures = _OnPath(net, parts, config.precision), seen(data)
    random = np.random.default_rng(config.seed)
    drawn = [module.draw(random) for _ in range(JUDGED)]
    with deterministic(config.threads, device):
        before = place(module, device).error(pictures, drawn)
    history = learn(module, data, config, workdir / "own_path.ckpt", READ, record)
    with deterministic(config.threads, device):
        after, trained = module.error(pictures, drawn), module.arrays()
    if not after < before:  # nor where it is no number
        return PathResult(net, before, before, history)
    weights = {name: trained[name] for part in parts for name in part.weights}
    return PathResult(net.with_weights(weights), before, after, history)


class _OnPath(Alternatives):
    """The SuperNet, of which a step trains the alternatives that one SubNet has."""

    def __init__(self, net: SuperNet, parts: Sequence[Part], precision: str) -> None:
        super().__init__(net.module(), {name for part in parts for name in part.weights}, precision)
        self._given = net.largest()
        self._operators = [variable for variable in net.space if variable.kind == OPERATOR]
        self._trained = {(v.name, c) for v in self._operators for c in v.choices if is_trained(c)}
        self._targets = tuple(dict.fromkeys(part.target for part in parts))
        self._drawn = self._given

    @property
    def _elastic(self) -> ElasticModule:
        assert isinstance(self._module, ElasticModule)
        return self._module

    def draw(self, random: np.random.Generator) -> SubNet:
        """A SubNet of the given sizes, whose blocks have any alternatives, at least one of them trained."""
        while True:
            choices = {each.name: each.choices[random.integers(len(each.choices))] for each in self._operators}
            subnet = SubNet.from_assignment(self._given.space, choices)
            if self._trained & {(each.name, subnet[each.name]) for each in self._operators}:
                return subnet

    def step(self, batch: Step) -> float:
        """Draws a SubNet, the same for all micro-batches of a step."""
        self._drawn = self.draw(batch.random)
        return super().step(batch)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """What each block of the SubNet that was drawn leaves ``[blocks]`` on images ``[b, 3, R, R]``."""
        with torch.no_grad():
            given = self._said(self._given, images)
        return self._left(given, images)

    def _left(self, given: Mapping[str, torch.Tensor], images: torch.Tensor) -> torch.Tensor:
        """The same, where it is known what the blocks of the given network say."""
        tensors = self._said(self._drawn, images)
        return torch.stack([left(said, given[name]) for name, said in tensors.items()])

    def _said(self, subnet: SubNet, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the blocks say that a SubNet has, by the tensors that they write in the given network."""
        module, values = self._elastic.activate(subnet), {self._elastic.graph.input: images}
        absent = module.elastic.remainder(subnet).stands_for
        module.advance(values, 0, len(module.schedule.nodes), hold=self._targets)
        return {name: values[name] for name in self._targets if name in values and name not in absent}

    @torch.no_grad()
    def error(self, images: torch.Tensor, subnets: Sequence[SubNet]) -> float:
        """The mean of what blocks of several SubNets leave, on images of any device."""
        put, losses = as_input(images, device_of(self)), list[float]()
        given = self._said(self._given, put)
        for self._drawn in subnets:
            losses.append(self._left(given, put).mean().item())
        return float(np.mean(losses))
