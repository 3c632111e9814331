"""The training of a round: SubNets with weights of their own, side by side, by one teacher and at one rate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from torch import nn

from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.data.augmentation.mixing import Mixing, mixing
from autotailor.finetuning.errors import DivergenceError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.beginning import Beginning
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.course import Course
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.polishing.rate import choose_rate
from autotailor.finetuning.training.divergence import remedy_of_precision
from autotailor.finetuning.training.later_epochs import LaterEpochs
from autotailor.finetuning.training.loop import train
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.task.registry import of

logger = logging.getLogger(__name__)


class SideBySide:
    """Trains the SubNets of each round.

    Args:
        course: of the race; its validation set is used where ``config.checks`` asks for it.
        workdir: folder of one checkpoint for each round.
        teacher: gives the teacher of all rounds.
    """

    def __init__(self, course: Course, workdir: Path, teacher: Callable[[], Teacher]) -> None:
        self._course, self._workdir, self._teacher = course, workdir, teacher
        self._rate: float | None = None

    def train(
        self, number: int, epochs: int, stream: LaterEpochs, entrants: Sequence[SubNet], before: Sequence[Graph]
    ) -> tuple[list[GraphModule], int]:
        """Trains the SubNets of one round.

        Args:
            number: of the round, counted from 0.
            epochs: of the stream.
            stream: of training pictures.
            entrants: the SubNets.
            before: their graphs, whose weights the training begins with.

        Returns:
            Their networks, and the number of images that each has seen.

        Raises:
            DivergenceError: the loss of all SubNets is no longer a finite number, or jumped too far.
        """
        data, config = self._course.data, self._course.config.of_round(number, epochs)
        modules = self._course.networks(before)
        identity = fingerprint(
            ["polish", config.identity, data.fingerprint, f"round {number}", repr(entrants)],
            self._teacher().network.state_dict(),
            *(module.state_dict() for module in modules),
        )
        resolutions = [resolution_of(subnet) for subnet in entrants]
        mix = mixing(data, config.augmentation, config.seed)
        config = self._with_rate(config, modules, resolutions, stream, mix)
        step = self._lockstep(modules, resolutions, config)
        names = [subnet.id for subnet in entrants]
        beginning = Beginning(modules, names, resolutions, data, config, step) if config.checks else None
        title = f"polish, round {number + 1} of {len(self._course.config.rounds)}, SubNets: {len(entrants)}"
        path = self._workdir / f"round_{number + 1:02d}.ckpt"
        watch = beginning.watch if beginning else None
        try:
            history = train(nn.ModuleList(modules), stream, config, step, path, identity, title, watch, mix=mix)
        except DivergenceError as error:
            remedy = f"lower polish.lr (now {config.lr:g}), or set polish.gradient_norm{remedy_of_precision(config)}"
            raise DivergenceError(error.happened, remedy) from error
        finally:
            step.close()
        for lost in beginning.lost if beginning else ():
            (modules[lost],) = self._course.networks([before[lost]])
        size = min(config.batch_size, len(stream))
        return modules, len(history) * stream.num_batches(config.batch_size) * size

    def _lockstep(self, modules: Sequence[nn.Module], resolutions: Sequence[int], config: PolishConfig) -> Lockstep:
        """One step of training for SubNets, with as many of them side by side as the whole race allows."""
        net, config = self._course.net, replace(config, workers=self._course.config.workers)
        dimensions = net.propagation.dimensions
        streams = {block.output: dimensions[block.output].index(block.width_out) for block in net.blocks}
        task = of(self._course.data)
        return Lockstep(modules, resolutions, self._teacher(), config, task, net.head.independent, streams)

    def _with_rate(
        self,
        config: PolishConfig,
        modules: Sequence[nn.Module],
        resolutions: Sequence[int],
        stream: LaterEpochs,
        mix: Mixing | None,
    ) -> PolishConfig:
        """The parameters with the rate of the race, which the range test of its first round finds."""
        if not config.rates:
            return config
        if self._rate is None:
            self._rate = choose_rate(modules, self._lockstep, resolutions, config, stream, mix)
            logger.info("polish: the learning rate is %g, of %s", self._rate, ", ".join(map(str, config.rates)))
        return replace(config, lr=self._rate)
