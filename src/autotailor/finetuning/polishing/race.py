"""The race of candidates: few are polished briefly, the best of them longer (successive halving).

Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016. The
validation set decides, by ``config.judge``, which SubNets go on to the next round and which weights are better; the
test set is not looked at.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from autotailor.compute.accelerator import resolve
from autotailor.compute.compilation import check_compiler
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import FinetuneConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.joint.training import Purpose, train_jointly
from autotailor.finetuning.lesson import teacher_alone
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.course import Course
from autotailor.finetuning.polishing.judging import Judging
from autotailor.finetuning.polishing.side_by_side import SideBySide
from autotailor.finetuning.polishing.standing import Standing
from autotailor.finetuning.polishing.teacher import choose_teacher
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.finetuning.training.processes.group import join
from autotailor.finetuning.training.watch import Record, no_record
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.prediction.evaluations.chance import CLEAR
from autotailor.task.registry import score_of

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)
Weights = Mapping[str, npt.NDArray[Any]]
CANDIDATES = Purpose("polish", "polish.joint", "candidates", "polish.joint")
COMPARED = 3
"""Of so many candidates for each place in a race the answers are compared with the teacher's: they say more than right
or wrong, and take seconds for each SubNet."""
JOINT = "joint"
"""What the names of its metrics begin with."""
COLUMNS = (
    "round", "subnet", "budgets", "epochs", "images", "accuracy_before", "accuracy_validation", "standard_error",
    "divergence_before", "divergence",
)  # fmt: skip


@dataclass(frozen=True)
class Polished:
    """A SubNet with the weights that it is exported with.

    Attributes:
        subnet: the SubNet.
        inherited: accuracy with the SuperNet's weights on the validation set, percent.
        polished: the same with weights of its own; None where the SubNet keeps the SuperNet's.
        weights: its own weights, by the names of the sliced graph; None where the SubNet keeps the SuperNet's.
        images: that the SubNet's own training has seen.
    """

    subnet: SubNet
    inherited: float
    polished: float | None = None
    weights: Weights | None = None
    images: int = 0


def polish(
    net: SuperNet,
    original: SuperNet,
    data: DataSplits,
    contests: Mapping[str, Sequence[SubNet]],
    inherited: Mapping[str, float],
    config: PolishConfig,
    workdir: Path,
    expected: Mapping[str, float] | None = None,
    joint: FinetuneConfig | None = None,
    record: Record = no_record,
) -> tuple[dict[str, Polished], pd.DataFrame]:
    """Trains the best SubNets of each budget with weights of their own.

    A SubNet that meets several budgets is trained once. Its best weights count, those of an earlier round included, and
    only if they are better than the SuperNet's: more accurate, or nearer to the teacher's answers (``config.judge``).
    Where no polished SubNet of a budget is better than the best one with the SuperNet's weights, the latter stays. The
    largest SubNet gets no weights of its own.

    Args:
        net: the trained SuperNet.
        original: the SuperNet as compiled; its largest SubNet, the original network, may be the teacher.
        data: the splits; the training and the validation set are used.
        contests: name of a budget to all SubNets that meet the budget, the cheapest first: of equally accurate ones,
            the first counts as the best.
        inherited: id of a SubNet to its accuracy with the SuperNet's weights on the validation set, percent.
        config: of the race and of the training.
        workdir: folder of one checkpoint for each round; made if missing.
        expected: the same as ``inherited`` with luck taken out (``autotailor.prediction.Measured``), by which SubNets
            are ordered before any training; None: as measured.
        joint: of a training in which the candidates of the first round share their weights, before each goes on with
            its part of these (``finetuning.joint``); None: they begin with the SuperNet's.
        record: takes the metrics of each epoch of this training as soon as the epoch ends.

    Returns:
        The SubNet of each budget, and ``polish.csv``: one row for each SubNet of each round, with the columns
        ``COLUMNS``. Round 0 is the joint training.

    Raises:
        TrainingError: a budget has no SubNet.
        DivergenceError: the loss of all SubNets is no longer a finite number, or jumped further than ``config.spike``
            allows.
    """
    import pandas as pd

    join(config)
    if config.compile and config.rounds:
        check_compiler(resolve(config.accelerator), "polish.compile")
    for name, subnets in contests.items():
        if not subnets:
            raise TrainingError(f"polish: no SubNet meets the budget {name}; ask for a looser budget in export.budgets")
    race = _Race(
        net, original, data, contests, inherited, expected or inherited, teacher_alone(config, data), Path(workdir)
    )
    if joint is not None and config.rounds:
        race.begin_together(joint, record)
    for number in range(len(config.rounds)):
        race.run(number)
    return race.result(), pd.DataFrame(race.rows, columns=list(COLUMNS))


def _named(record: Record) -> Record:
    """A record whose metrics say that they are of the joint training, and not of the rounds after it."""

    def named(metrics: Mapping[str, float], epoch: int) -> None:
        record({key if key == "epoch" else f"{JOINT}/{key}": value for key, value in metrics.items()}, epoch)

    return named


@dataclass(frozen=True, eq=False)
class _Reached:
    """The best weights that a SubNet has had since the race began, and the images that led to them."""

    standing: Standing
    graph: Graph
    images: int


class _Race:
    """The state between rounds: accuracies and weights of the SubNets of the last round, and the best of all rounds."""

    def __init__(
        self,
        net: SuperNet,
        original: SuperNet,
        data: DataSplits,
        contests: Mapping[str, Sequence[SubNet]],
        inherited: Mapping[str, float],
        expected: Mapping[str, float],
        config: PolishConfig,
        workdir: Path,
    ) -> None:
        self._original, self._shared = original, net
        self._data, self._contests, self._config = data, contests, config
        self._accuracies, self._expected, self._workdir = inherited, expected, workdir
        self._course = Course(net, data, config, resolve(config.accelerator))
        self._judging = Judging(self._course, inherited, lambda: self._teacher)
        self._training = SideBySide(self._course, workdir, lambda: self._teacher)
        self._last = {id_: Standing(accuracy, 0.0) for id_, accuracy in expected.items()}
        self._graphs, self._images, self._first_epoch = dict[str, Graph](), 0, FIRST_EPOCH
        self._reached: dict[str, _Reached] = {}
        self.rows: list[tuple[Any, ...]] = []

    def begin_together(self, config: FinetuneConfig, record: Record) -> None:
        """Trains weights that the candidates of the first round share, with which they begin if these are better."""
        heats, entrants = self._heats(0)
        if not entrants:
            return
        result = train_jointly(
            self._course.net, self._original, self._data, entrants, config, self._workdir, _named(record), CANDIDATES
        )
        logger.info("polish: %s", result.said(score_of(self._data).mean, CANDIDATES.subnets))
        if result.gain > 0:
            self._shared, self._images, self._first_epoch = result.net, result.images, FIRST_EPOCH + config.epochs
            modules = self._course.networks(self._graphs_before(entrants))
            self._take(0, config.epochs, heats, entrants, modules)

    def run(self, number: int) -> None:
        """One round, counted from 0."""
        heats, entrants = self._heats(number)
        if not entrants:
            return
        pictures = augmented(self._data, self._config.augmentation, self._config.seed)
        epochs, images = self._config.rounds[number].parts(len(pictures), self._config.checks, self._config.batch_size)
        stream = LaterEpochs(pictures, self._first_epoch, images)
        modules, seen = self._training.train(number, epochs, stream, entrants, self._graphs_before(entrants))
        self._images += seen
        self._first_epoch += epochs
        self._take(number + 1, epochs, heats, entrants, modules)

    def result(self) -> dict[str, Polished]:
        """The SubNet of each budget after the last round."""
        return {name: self._chosen(name) for name in self._contests}

    @cached_property
    def _teacher(self) -> Teacher:
        """Teaches all rounds."""
        return choose_teacher(self._shared, self._original, self._data, self._config, self._course.device)

    def _heats(self, number: int) -> tuple[dict[str, list[SubNet]], list[SubNet]]:
        """The SubNets that take part in a round: those of each budget, and all of them."""
        heats = {name: self._best(name, self._config.rounds[number].candidates) for name in self._contests}
        return heats, list(dict.fromkeys(subnet for heat in heats.values() for subnet in heat))

    def _best(self, name: str, count: int) -> list[SubNet]:
        """The best SubNets of a budget among those of the last round, the first of equals first.

        They are the most accurate ones; where the teacher's answers count, those of ``COMPARED`` times as many whose
        answers are nearest to these.
        """
        largest = self._course.net.largest()
        ranked = [s for s in self._contests[name] if s.id in self._last and s != largest]
        ranked.sort(key=lambda subnet: -self._last[subnet.id].accuracy)
        if not self._judging.is_taught:
            return ranked[:count]
        for subnet, judged in zip(ranked := ranked[: COMPARED * count], self._judging.inherited(ranked), strict=True):
            last = self._last[subnet.id]
            if math.isnan(last.divergence):  # no round has judged its answers
                self._last[subnet.id] = replace(last, divergence=judged.divergence)
        return sorted(ranked, key=lambda subnet: self._last[subnet.id].divergence)[:count]

    def _graphs_before(self, entrants: Sequence[SubNet]) -> list[Graph]:
        """The graphs that a round begins with: those of the last round, or those that inherit."""
        if self._graphs:
            return [self._graphs[subnet.id] for subnet in entrants]
        return self._course.inheriting(self._shared, entrants)

    def _take(
        self,
        round_number: int,
        epochs: int,
        heats: Mapping[str, Sequence[SubNet]],
        entrants: Sequence[SubNet],
        modules: Sequence[GraphModule],
    ) -> None:
        """Judges trained SubNets, whose standings and weights count from now on, and writes their rows."""
        judged = self._judging.standings(modules, entrants)
        for subnet in entrants:
            budgets = " ".join(name for name, heat in heats.items() if subnet in heat)
            now, before = judged[subnet.id], self._last[subnet.id]
            _say(subnet.id, before, now)
            row = (subnet.id, budgets, epochs, self._images, before.accuracy, now.accuracy, now.error)
            self.rows.append((round_number, *row, before.divergence, now.divergence))
        self._last = judged
        self._graphs = {
            subnet.id: module.graph.with_weights(module.arrays())
            for subnet, module in zip(entrants, modules, strict=True)
        }
        for id_, now in judged.items():
            self._keep(id_, now)

    def _keep(self, id_: str, now: Standing) -> None:
        """Keeps the weights that a SubNet has now, unless those of an earlier round were better."""
        before = self._reached.get(id_)
        if before is None or now.merit >= before.standing.merit:
            self._reached[id_] = _Reached(now, self._graphs[id_], self._images)
        elif before.standing.accuracy - now.accuracy > CLEAR * now.error:
            logger.warning(
                "polish: the last round took SubNet %s from %.1f to %.1f %%; the weights of before stay; lower "
                "polish.lr, or the epochs of this round",
                *(id_, before.standing.accuracy, now.accuracy),
            )

    def _chosen(self, name: str) -> Polished:
        contest = self._contests[name]
        kept = max(contest, key=lambda subnet: self._expected[subnet.id])
        reached = {subnet: self._reached[subnet.id] for subnet in contest if subnet.id in self._reached}
        able = [subnet for subnet, each in reached.items() if each.standing.gains_on(self._inherited(subnet))]
        best = max(able, key=lambda subnet: reached[subnet].standing.merit, default=None)
        if best is None or not self._beats(reached[best].standing, kept):
            return Polished(kept, self._accuracies[kept.id])
        own = reached[best]
        return Polished(best, self._accuracies[best.id], own.standing.accuracy, own.graph.weights, own.images)

    def _beats(self, now: Standing, kept: SubNet) -> bool:
        """Whether trained weights are better than a SubNet that inherits; its accuracy counts without its luck."""
        if not self._judging.is_taught:
            return now.accuracy > self._expected[kept.id]
        return now.merit > self._inherited(kept).merit

    def _inherited(self, subnet: SubNet) -> Standing:
        """A SubNet with the weights that it inherits."""
        (standing,) = self._judging.inherited([subnet])
        return standing


def _say(id_: str, before: Standing, now: Standing) -> None:
    """A line of what training has made of a SubNet; two where the teacher's answers count."""
    logger.info("polish: SubNet %s %.1f %%, before %.1f %%", id_, now.accuracy, before.accuracy)
    if not math.isnan(now.divergence):
        told = (now.divergence, before.divergence)
        logger.info("polish: its answers are %.3f nats from the teacher's, before %.3f", *told)
