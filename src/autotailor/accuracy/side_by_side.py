"""Evaluates many SubNets of one SuperNet: side by side in threads on the processor, in turn on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from queue import SimpleQueue

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.evaluation import BATCH, BoolArray, evaluate
from autotailor.compute.placement import device_of
from autotailor.compute.turns import executor
from autotailor.data.splits import EvaluationSet
from autotailor.ir.execution.executor import ElasticModule
from autotailor.ir.space.subnet import SubNet


class Evaluator:
    """Recalibrates and evaluates SubNets; the active SubNet of the SuperNet's module stays the same.

    Args:
        module: of the SuperNet; its weights are read where they lie.
        calibrator: of every SubNet.
        images: the evaluation set.
        workers: SubNets side by side on the processor, each on its own view of the shared weights; results do not
            depend on their number.
        batch_size: images per forward pass.
    """

    def __init__(
        self,
        module: ElasticModule,
        calibrator: Calibrator,
        images: EvaluationSet,
        workers: int,
        batch_size: int = BATCH,
    ) -> None:
        self._calibrator, self._images = calibrator, images
        self._workers, self._batch_size = workers, batch_size
        self._device = device_of(module)
        self._views = [module.replica() for _ in range(workers)]

    def look_at(self, module: ElasticModule) -> None:
        """Reads the weights of another module, or those of the same module where they lie now."""
        for view in self._views:
            view.look_at(module)

    def all(self, subnets: Sequence[SubNet]) -> Iterator[tuple[SubNet, BoolArray]]:
        """Yields each SubNet with its correctness ``[n]``, in order, as soon as it is evaluated."""
        free: SimpleQueue[ElasticModule] = SimpleQueue()
        for view in self._views:
            free.put(view)

        def one(subnet: SubNet) -> BoolArray:
            view = free.get()
            try:
                statistics = self._calibrator.statistics(view.eval(), subnet)
                return evaluate(view, subnet, self._images, statistics, self._batch_size)
            finally:
                free.put(view)

        with executor(self._workers, self._device, "evaluation") as pool:
            yield from zip(subnets, pool.map(one, subnets), strict=True)
