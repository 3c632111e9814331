"""Where SubNets stand on the validation set, with weights of their own or with those that they inherit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from functools import cached_property

import torch

from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.compute.turns import executor
from autotailor.data.splits import DataSplits
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.config import DIVERGENCE, PolishConfig
from autotailor.finetuning.polishing.standing import Jury, Standing
from autotailor.finetuning.training.processes.group import join
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.task.registry import of


def inheriting(
    net: SuperNet, subnets: Sequence[SubNet], data: DataSplits, config: PolishConfig, device: torch.device
) -> list[Graph]:
    """SubNets with the weights that they inherit from a SuperNet, and calibrated statistics."""
    module, calibrator = net.module().eval(), Calibrator(data, config.calibration)
    module.to(device)
    with deterministic(config.threads, device):
        return [net.slice(subnet, calibrator.statistics(module, subnet)) for subnet in subnets]


def networks(graphs: Sequence[Graph], data: DataSplits, device: torch.device) -> list[GraphModule]:
    """Graphs as networks of a task on a device."""
    return [GraphModule(graph, logits=of(data).logits).to(device) for graph in graphs]


class Judging:
    """Judges SubNets by right answers, or by how near their answers are to the teacher's (``config.judge``).

    Args:
        net: the trained SuperNet, whose weights SubNets inherit.
        data: the splits; the validation set judges.
        config: of the race.
        device: that computes.
        inherited: id of a SubNet to its accuracy with the SuperNet's weights, percent.
        teacher: gives the teacher, which is asked for only where its answers count.
    """

    def __init__(
        self,
        net: SuperNet,
        data: DataSplits,
        config: PolishConfig,
        device: torch.device,
        inherited: Mapping[str, float],
        teacher: Callable[[], Teacher],
    ) -> None:
        self._net, self._data, self._config, self._device = net, data, config, device
        self._inherited, self._teacher = inherited, teacher
        self._judged: dict[str, Standing] = {}

    @property
    def is_taught(self) -> bool:
        """Whether weights are judged by how near their answers are to the teacher's."""
        return self._config.judge == DIVERGENCE

    def inherited(self, subnets: Sequence[SubNet]) -> list[Standing]:
        """SubNets with the weights that they inherit, each judged once."""
        if not self.is_taught:
            return [Standing(self._inherited[subnet.id], 0.0) for subnet in subnets]
        fresh = [subnet for subnet in subnets if subnet.id not in self._judged]
        if fresh:
            graphs = inheriting(self._net, fresh, self._data, self._config, self._device)
            self._judged |= self.standings(networks(graphs, self._data, self._device), fresh)
        return [self._judged[subnet.id] for subnet in subnets]

    def standings(self, modules: Sequence[GraphModule], subnets: Sequence[SubNet]) -> dict[str, Standing]:
        """Where networks of SubNets stand, by id.

        Each of the processes that train together evaluates SubNets of its own.
        """
        group, jury = join(self._config), self._jury

        def one(number: int) -> Standing:
            return jury.standing(modules[number], resolution_of(subnets[number]))

        workers, device, own = self._config.workers, self._device, range(group.rank, len(subnets), group.size)
        numbers = torch.zeros(len(subnets), len(fields(Standing)), dtype=torch.float64)
        with deterministic(self._config.threads, device), executor(workers, device) as pool:
            for number, each in zip(own, pool.map(one, own), strict=True):
                numbers[number] = torch.tensor(astuple(each), dtype=torch.float64)
        rows = group.gather(numbers).sum(0).tolist()
        return {subnet.id: Standing(*row) for subnet, row in zip(subnets, rows, strict=True)}

    @cached_property
    def _jury(self) -> Jury:
        teacher = self._teacher() if self.is_taught else None
        return Jury(self._data.validation, teacher, self._net.head.independent)
