"""Runs SubNets on batch after batch, each from the last kept tensors of its prefix.

In calibration, the activations behind a normalisation depend on the batch and on the steps before, and in evaluation on
the image and on the steps before with their statistics. So both share prefixes, each in a pass of its own: calibration
comes first, because evaluation needs the statistics. Every SubNet gets what it gets alone, bit by bit, because every
step is computed with the same function from the same tensors, once or more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.evaluation import outcome
from autotailor.accuracy.sharing.plan import Visit
from autotailor.compute.placement import device_of, put
from autotailor.data.splits import Batch
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.graph import Outputs
from autotailor.ir.execution.modules.statistics import NORMALISATION, Collector, Statistics
from autotailor.ir.execution.schedule import PreparedSubNet
from autotailor.ir.operators.rule import Tensor
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.task.interface import Judgement, Lesson, Task

Values = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Reference:
    """The largest SubNet, from whose outputs others are far or not.

    Its outputs are not kept for all images, because maps of a thousand pictures take gigabytes: each group of SubNets
    computes them once more.

    Attributes:
        visit: from its first step to the end.
        subnet: prepared.
        statistics: of its normalisations.
        lesson: how far other outputs are (``Task.apart``).
    """

    visit: Visit
    subnet: PreparedSubNet
    statistics: Statistics
    lesson: Lesson

    def outputs(self, module: ElasticModule, batch: _Batch) -> Outputs:
        """What it says of a batch of images that nothing was computed of yet."""
        module.use(self.subnet).statistics = self.statistics
        return batch.logits(self.visit, self.subnet)


class Tour:
    """Visits that a module makes on each batch.

    Args:
        module: in evaluation mode; it runs the SubNets.
        subnets: prepared by the module or by a replica.
        visits: which SubNets run, in order, and what is kept meanwhile (``plan.py``).
    """

    def __init__(self, module: ElasticModule, subnets: Sequence[PreparedSubNet], visits: Sequence[Visit]) -> None:
        self._module, self._visits = module, visits
        self._prepared = [subnets[visit.subnets[0]] for visit in visits]

    @torch.no_grad()
    def statistics(self, batches: Iterable[Tensor]) -> list[Statistics]:
        """Means and variances of the BatchNorm layers of each visit's SubNet over batches of images."""
        collectors = [Collector() for _ in self._visits]
        for images in batches:
            batch = _Batch(self._module, images)
            for visit, prepared, collector in zip(self._visits, self._prepared, collectors, strict=True):
                self._module.use(prepared)
                with self._module.collecting(collector=collector):
                    batch.logits(visit, prepared)
        statistics: list[Statistics] = []
        for visit, prepared, collector in zip(self._visits, self._prepared, collectors, strict=True):
            before = [node.name for node in prepared.schedule.nodes[: visit.start] if node.kind == NORMALISATION]
            statistics.append({**{name: statistics[-1][name] for name in before}, **collector.statistics()})
        return statistics

    @torch.no_grad()
    def outcomes(
        self,
        batches: Iterable[Batch],
        statistics: Sequence[Statistics],
        task: Task,
        reference: Reference | None = None,
    ) -> list[Outcome]:
        """Values and losses of each visit's SubNet, image by image.

        Args:
            batches: of images and their targets.
            statistics: of each visit.
            task: of the images.
            reference: divergences from its outputs take the place of losses; None: losses are those of the targets.
        """
        judgements: list[list[Judgement]] = [[] for _ in self._visits]
        for images, targets in batches:
            batch, placed = _Batch(self._module, images), put(targets, device_of(self._module))
            wanted = None if reference is None else reference.outputs(self._module, _Batch(self._module, images))
            for number, (visit, prepared) in enumerate(zip(self._visits, self._prepared, strict=True)):
                self._module.use(prepared).statistics = statistics[number]
                said = batch.logits(visit, prepared)
                outputs = task.read(said, resolution_of(prepared.subnet) or images.shape[-1])
                found = task.judge(outputs, placed)
                if reference is not None:
                    found = replace(found, losses=task.apart(said, wanted, reference.lesson))
                judgements[number].append(found)
        return [replace(outcome(parts), is_divergence=reference is not None) for parts in judgements]


class _Batch:
    """One batch of images on the way through all visits.

    Attributes:
        kept: position to the tensors that are kept there.
    """

    def __init__(self, module: ElasticModule, images: Tensor) -> None:
        self._module, self._images = module, images
        self._sized: dict[int, Tensor] = {}
        self.kept: dict[int, Values] = {}

    def logits(self, visit: Visit, prepared: PreparedSubNet) -> Outputs:
        """Makes a visit with the SubNet that is active in the module."""
        schedule, position = prepared.schedule, visit.start
        values = dict(self.kept[position]) if position else {schedule.source: self._input(prepared)}
        self.kept = {p: kept for p, kept in self.kept.items() if p < position or (p == position and not visit.releases)}
        held = {name for cut in visit.keeps for name in cut.names}
        for cut in visit.keeps:
            self._module.advance(values, position, cut.position, held)
            position = cut.position
            self.kept[position] = {name: values[name] for name in cut.names}
        values = {name: values[name] for name in schedule.live[position]}
        self._module.advance(values, position, len(schedule.nodes))
        return self._module.logits(values)

    def _input(self, prepared: PreparedSubNet) -> Tensor:
        """The images as the SubNet reads them; SubNets of one resolution follow one another."""
        resolution = resolution_of(prepared.subnet)
        if resolution not in self._sized:
            self._sized = {resolution: as_input(self._images, device_of(self._module), resolution)}
        return self._sized[resolution]
