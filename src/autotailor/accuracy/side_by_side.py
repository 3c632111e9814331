"""Evaluates many SubNets of one SuperNet: side by side in threads on the processor, in turn on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import SimpleQueue

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.config import MEMORY_MB
from autotailor.accuracy.evaluation import BATCH
from autotailor.accuracy.sharing.groups import groups
from autotailor.accuracy.sharing.plan import plan
from autotailor.accuracy.sharing.steps import Steps, steps_of
from autotailor.accuracy.sharing.tour import Reference, Tour
from autotailor.accuracy.sharing.tree import grow
from autotailor.compute.placement import device_of
from autotailor.compute.turns import executor
from autotailor.data.splits import EvaluationSet, check_labels
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.schedule import PreparedSubNet
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.task.interface import Lesson
from autotailor.task.registry import of


class Evaluator:
    """Recalibrates and evaluates SubNets; the active SubNet of the SuperNet's module stays the same.

    SubNets whose first operators are alike compute them once (``sharing/``); each gets the same bits as alone, on the
    processor.

    Args:
        module: of the SuperNet; its weights are read where they lie.
        calibrator: of every SubNet.
        images: the evaluation set.
        workers: groups of SubNets side by side on the processor, each on its own view of the shared weights; results
            do not depend on their number.
        batch_size: images per forward pass.
        memory_mb: that kept activations may take, all workers together, in MiB; 0 keeps none.
        lesson: how far outputs are from those of the largest SubNet; these divergences take the place of losses. The
            module then has no final activation. None: losses are those of the images' targets.
    """

    def __init__(
        self,
        module: ElasticModule,
        calibrator: Calibrator,
        images: EvaluationSet,
        workers: int,
        batch_size: int = BATCH,
        memory_mb: int = MEMORY_MB,
        lesson: Lesson | None = None,
    ) -> None:
        self._calibrator, self._images, self._batch_size = calibrator, images, batch_size
        self._device = device_of(module)
        self._workers = workers if self._device.type == "cpu" else 1
        self._memory = memory_mb * 2**20 // self._workers
        self._lesson = lesson
        self._views = [module.replica() for _ in range(self._workers)]

    def look_at(self, module: ElasticModule) -> None:
        """Reads the weights of another module, or those of the same module where they lie now."""
        for view in self._views:
            view.look_at(module)

    def all(self, subnets: Sequence[SubNet]) -> Iterator[tuple[SubNet, Outcome]]:
        """Yields each SubNet with its answers and losses, group by group: SubNets that share much come together.

        Raises:
            AccuracyError: the network has re-inserted BatchNorm that is not calibrated yet.
            DataError: an image has no label.
        """
        check_labels(self._images)
        if not subnets:
            return
        view = self._views[0]
        self._calibrator.check(view)
        steps = [steps_of(view.elastic, view.prepare(subnet)) for subnet in subnets]
        divided = groups(grow(steps), self._workers)
        reference = self._reference(view.eval(), largest(subnets[0].space)) if self._lesson else None
        free: SimpleQueue[ElasticModule] = SimpleQueue()
        for view in self._views:
            free.put(view)

        def one(group: Sequence[int]) -> list[Outcome]:
            view = free.get()
            try:
                prepared = [view.prepare(subnets[i]) for i in group]
                return self._group(view.eval(), prepared, [steps[i] for i in group], reference)
            finally:
                free.put(view)

        with executor(self._workers, self._device, "evaluation") as pool:
            for group, outcomes in zip(divided, pool.map(one, divided), strict=True):
                yield from zip((subnets[i] for i in group), outcomes, strict=True)

    def _reference(self, view: ElasticModule, subnet: SubNet) -> Reference:
        """The largest SubNet with its statistics."""
        prepared = view.prepare(subnet)
        visits = plan(grow([steps_of(view.elastic, prepared)]), 0, self._batch_size)
        (statistics,) = Tour(view, [prepared], visits).statistics(self._calibrator.images_for(view))
        return Reference(visits[0], prepared, statistics, self._lesson or Lesson())

    def _group(
        self,
        view: ElasticModule,
        prepared: Sequence[PreparedSubNet],
        steps: Sequence[Steps],
        reference: Reference | None,
    ) -> list[Outcome]:
        """Answers and losses of the SubNets of one group, in their order."""
        calibration = self._calibrator.images_for(view)
        most = max(min(self._batch_size, len(self._images)), *(len(images) for images in calibration))
        visits = plan(grow(steps), self._memory, most)
        tour = Tour(view, prepared, visits)
        statistics = tour.statistics(calibration)
        outcomes = tour.outcomes(self._images.batches(self._batch_size), statistics, of(self._images), reference)
        by_subnet = {i: outcome for visit, outcome in zip(visits, outcomes, strict=True) for i in visit.subnets}
        return [by_subnet[i] for i in range(len(prepared))]
