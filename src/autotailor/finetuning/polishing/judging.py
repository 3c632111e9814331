"""Where SubNets stand on the validation set, with weights of their own or with those that they inherit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from functools import cached_property

import torch

from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.config import DIVERGENCE
from autotailor.accuracy.determinism import deterministic
from autotailor.compute.turns import executor
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.course import Course
from autotailor.finetuning.polishing.standing import Jury, Standing
from autotailor.finetuning.training.processes.group import join
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.space.subnet import SubNet
from autotailor.task.registry import of


class Judging:
    """Judges SubNets by right answers, or by how near their answers are to the teacher's (``config.judge``).

    Args:
        course: of the race.
        inherited: id of a SubNet to its accuracy with the SuperNet's weights, percent.
        teacher: gives the teacher, which is asked for only where its answers count.
    """

    def __init__(self, course: Course, inherited: Mapping[str, float], teacher: Callable[[], Teacher]) -> None:
        self._course, self._inherited, self._teacher = course, inherited, teacher
        self._judged: dict[str, Standing] = {}

    @property
    def is_taught(self) -> bool:
        """Whether weights are judged by how near their answers are to the teacher's.

        Where the teacher answers images of each SubNet's size (``Task.at_side``), and SubNets have several sizes, they
        are not: a SubNet for small images would be near to a teacher that is wrong about them.
        """
        is_incomparable = of(self._course.data).at_side and RESOLUTION in self._course.net.space.positions
        return self._course.config.judge == DIVERGENCE and not is_incomparable

    def inherited(self, subnets: Sequence[SubNet]) -> list[Standing]:
        """SubNets with the weights that they inherit, each judged once."""
        if not self.is_taught:
            return [Standing(self._inherited[subnet.id], 0.0) for subnet in subnets]
        fresh = [subnet for subnet in subnets if subnet.id not in self._judged]
        if fresh:
            modules = self._course.networks(self._course.inheriting(self._course.net, fresh))
            self._judged |= self.standings(modules, fresh)
        return [self._judged[subnet.id] for subnet in subnets]

    def standings(self, modules: Sequence[GraphModule], subnets: Sequence[SubNet]) -> dict[str, Standing]:
        """Where networks of SubNets stand, by id.

        Each of the processes that train together evaluates SubNets of its own.
        """
        config, device = self._course.config, self._course.device
        group, jury = join(config), self._jury

        def one(number: int) -> Standing:
            return jury.standing(modules[number], resolution_of(subnets[number]))

        own = range(group.rank, len(subnets), group.size)
        numbers = torch.zeros(len(subnets), len(fields(Standing)), dtype=torch.float64)
        with deterministic(config.threads, device), executor(config.workers, device) as pool:
            for number, each in zip(own, pool.map(one, own), strict=True):
                numbers[number] = torch.tensor(astuple(each), dtype=torch.float64)
        rows = group.gather(numbers).sum(0).tolist()
        return {subnet.id: Standing(*row) for subnet, row in zip(subnets, rows, strict=True)}

    @cached_property
    def _jury(self) -> Jury:
        teacher = self._teacher() if self.is_taught else None
        return Jury(self._course.data.validation, teacher, self._course.net.head.independent)
