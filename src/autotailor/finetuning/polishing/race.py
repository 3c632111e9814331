"""The race of candidates: few are polished briefly, the best of them longer (successive halving).

Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016. The
validation set decides, by ``config.judge``, which SubNets go on to the next round and which weights are better; the
test set is not looked at.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import torch
from torch import nn

from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.accelerator import resolve
from autotailor.compute.compilation import check_compiler
from autotailor.compute.turns import executor
from autotailor.data.augmentation.mixing import Mixing, mixing
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import FinetuneConfig
from autotailor.finetuning.errors import DivergenceError, TrainingError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.joint.training import Purpose, train_jointly
from autotailor.finetuning.lesson import teacher_alone
from autotailor.finetuning.polishing.beginning import Beginning
from autotailor.finetuning.polishing.config import DIVERGENCE, PolishConfig
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.polishing.rate import choose_rate
from autotailor.finetuning.polishing.standing import Jury, Standing
from autotailor.finetuning.polishing.teacher import choose_teacher
from autotailor.finetuning.training.divergence import remedy_of_precision
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.finetuning.training.loop import train
from autotailor.finetuning.training.processes.group import join
from autotailor.finetuning.training.watch import Record, no_record
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.prediction.evaluations.chance import CLEAR
from autotailor.task.registry import of, score_of

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
        self._net, self._data, self._contests, self._config = net, data, contests, config
        self._inherited, self._expected, self._workdir = inherited, expected, workdir
        self._device = resolve(config.accelerator)
        self._accuracies, self._graphs, self._images = dict(expected), dict[str, Graph](), 0
        self._reached: dict[str, _Reached] = {}
        self._standings: dict[str, Standing] = {}
        self._divergences: dict[str, float] = {}
        self._first_epoch = FIRST_EPOCH
        self._rate: float | None = None
        self.rows: list[tuple[Any, ...]] = []

    def begin_together(self, config: FinetuneConfig, record: Record) -> None:
        """Trains weights that the candidates of the first round share, with which they begin if these are better."""
        heats, entrants = self._heats(0)
        if not entrants:
            return
        result = train_jointly(
            self._net, self._original, self._data, entrants, config, self._workdir, _named(record), CANDIDATES
        )
        logger.info("polish: %s", result.said(score_of(self._data).mean, CANDIDATES.subnets))
        if result.gain > 0:
            self._shared, self._images, self._first_epoch = result.net, result.images, FIRST_EPOCH + config.epochs
            self._take(0, config.epochs, heats, entrants, self._modules(self._graphs_before(entrants)))

    def run(self, number: int) -> None:
        """One round, counted from 0."""
        heats, entrants = self._heats(number)
        if not entrants:
            return
        pictures = augmented(self._data, self._config.augmentation, self._config.seed)
        epochs, images = self._config.rounds[number].parts(len(pictures), self._config.checks, self._config.batch_size)
        stream = LaterEpochs(pictures, self._first_epoch, images)
        modules, seen = self._train(number, self._config.of_round(number, epochs), stream, entrants)
        self._images += seen
        self._first_epoch += epochs
        self._take(number + 1, epochs, heats, entrants, modules)

    def _heats(self, number: int) -> tuple[dict[str, list[SubNet]], list[SubNet]]:
        """The SubNets that take part in a round: those of each budget, and all of them."""
        heats = {name: self._best(name, self._config.rounds[number].candidates) for name in self._contests}
        return heats, list(dict.fromkeys(subnet for heat in heats.values() for subnet in heat))

    def _take(
        self,
        round_number: int,
        epochs: int,
        heats: Mapping[str, Sequence[SubNet]],
        entrants: Sequence[SubNet],
        modules: Sequence[GraphModule],
    ) -> None:
        """Measures trained SubNets, whose accuracies and weights count from now on, and writes their rows."""
        measured = self._evaluate(modules, entrants)
        for subnet in entrants:
            budgets = " ".join(name for name, heat in heats.items() if subnet in heat)
            now, before = measured[subnet.id], self._divergences.get(subnet.id, math.nan)
            row = (subnet.id, budgets, epochs, self._images, self._accuracies[subnet.id], now.accuracy, now.error)
            self.rows.append((round_number, *row, before, now.divergence))
        self._accuracies = {id_: now.accuracy for id_, now in measured.items()}
        self._divergences = {id_: now.divergence for id_, now in measured.items()}
        self._graphs = {
            subnet.id: module.graph.with_weights(module.arrays())
            for subnet, module in zip(entrants, modules, strict=True)
        }
        for id_, now in measured.items():
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

    def result(self) -> dict[str, Polished]:
        """The SubNet of each budget after the last round."""
        return {name: self._chosen(name) for name in self._contests}

    def _chosen(self, name: str) -> Polished:
        contest = self._contests[name]
        kept = max(contest, key=lambda subnet: self._expected[subnet.id])
        reached = {subnet: self._reached[subnet.id] for subnet in contest if subnet.id in self._reached}
        able = [subnet for subnet, each in reached.items() if each.standing.gains_on(self._inheriting(subnet))]
        best = max(able, key=lambda subnet: reached[subnet].standing.merit, default=None)
        if best is None or not self._beats(reached[best].standing, kept):
            return Polished(kept, self._inherited[kept.id])
        own = reached[best]
        return Polished(best, self._inherited[best.id], own.standing.accuracy, own.graph.weights, own.images)

    @property
    def _is_taught(self) -> bool:
        """Whether weights are judged by how near their answers are to the teacher's."""
        return self._config.judge == DIVERGENCE

    def _beats(self, now: Standing, kept: SubNet) -> bool:
        """Whether trained weights are better than a SubNet that inherits; its accuracy counts without its luck."""
        if not self._is_taught:
            return now.accuracy > self._expected[kept.id]
        return now.merit > self._inheriting(kept).merit

    def _inheriting(self, subnet: SubNet) -> Standing:
        """A SubNet with the weights that it inherits."""
        if not self._is_taught:
            return Standing(self._inherited[subnet.id], 0.0)
        self._judge_inherited([subnet])
        return self._standings[subnet.id]

    def _judge_inherited(self, subnets: Sequence[SubNet]) -> None:
        """Judges SubNets with the weights that they inherit, where the teacher's answers count; each of them once."""
        fresh = [subnet for subnet in subnets if subnet.id not in self._standings] if self._is_taught else []
        judged = self._judge(self._modules(self._sliced(self._net, fresh)), fresh) if fresh else {}
        self._standings |= judged
        self._divergences |= {id_: each.divergence for id_, each in judged.items()}

    def _best(self, name: str, count: int) -> list[SubNet]:
        """The best SubNets of a budget among those of the last round, the first of equals first.

        They are the most accurate ones; where the teacher's answers count, those of ``COMPARED`` times as many whose
        answers are nearest to these.
        """
        largest = self._net.largest()
        ranked = [s for s in self._contests[name] if s.id in self._accuracies and s != largest]
        ranked.sort(key=lambda subnet: -self._accuracies[subnet.id])
        if not self._is_taught:
            return ranked[:count]
        self._judge_inherited(ranked := ranked[: COMPARED * count])
        return sorted(ranked, key=lambda subnet: self._divergences[subnet.id])[:count]

    def _train(
        self, number: int, config: PolishConfig, stream: LaterEpochs, entrants: Sequence[SubNet]
    ) -> tuple[list[GraphModule], int]:
        """Trains SubNets side by side; returns them and the number of images that each has seen."""
        before = self._graphs_before(entrants)
        modules = self._modules(before)
        teacher = self._teacher
        identity = fingerprint(
            ["polish", config.identity, self._data.fingerprint, f"round {number}", repr(entrants)],
            teacher.network.state_dict(),
            *(module.state_dict() for module in modules),
        )
        resolutions = [resolution_of(subnet) for subnet in entrants]
        mix = mixing(self._data, config.augmentation, config.seed)
        config = self._with_rate(config, modules, resolutions, stream, mix)
        step = self._lockstep(modules, resolutions, config)
        names = [subnet.id for subnet in entrants]
        beginning = Beginning(modules, names, resolutions, self._data, config, step) if config.checks else None
        title = f"polish, round {number + 1} of {len(self._config.rounds)}, SubNets: {len(entrants)}"
        path = self._workdir / f"round_{number + 1:02d}.ckpt"
        watch = beginning.watch if beginning else None
        try:
            history = train(nn.ModuleList(modules), stream, config, step, path, identity, title, watch, mix=mix)
        except DivergenceError as error:
            remedy = f"lower polish.lr (now {config.lr:g}), or set polish.gradient_norm{remedy_of_precision(config)}"
            raise DivergenceError(error.happened, remedy) from error
        finally:
            step.close()
        lost = beginning.lost if beginning else set[int]()
        modules = [self._modules([before[n]])[0] if n in lost else module for n, module in enumerate(modules)]
        size = min(config.batch_size, len(stream))
        return modules, len(history) * stream.num_batches(config.batch_size) * size

    def _lockstep(self, modules: Sequence[nn.Module], resolutions: Sequence[int], config: PolishConfig) -> Lockstep:
        """One step of training for SubNets, with as many of them side by side as the whole race allows."""
        config = replace(config, workers=self._config.workers)
        dimensions = self._net.propagation.dimensions
        streams = {block.output: dimensions[block.output].index(block.width_out) for block in self._net.blocks}
        return Lockstep(
            *(modules, resolutions, self._teacher, config, of(self._data)), self._net.head.independent, streams
        )

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

    @cached_property
    def _teacher(self) -> Teacher:
        """Teaches all rounds."""
        return choose_teacher(self._shared, self._original, self._data, self._config, self._device)

    def _modules(self, graphs: Sequence[Graph]) -> list[GraphModule]:
        return [GraphModule(graph, logits=of(self._data).logits).to(self._device) for graph in graphs]

    def _graphs_before(self, entrants: Sequence[SubNet]) -> list[Graph]:
        """The graphs that a round begins with: those of the last round, or sliced ones with calibrated statistics."""
        if self._graphs:
            return [self._graphs[subnet.id] for subnet in entrants]
        return self._sliced(self._shared, entrants)

    def _sliced(self, net: SuperNet, subnets: Sequence[SubNet]) -> list[Graph]:
        """SubNets with the weights that they inherit from a SuperNet, and calibrated statistics."""
        module, calibrator = net.module().eval(), Calibrator(self._data, self._config.calibration)
        module.to(self._device)
        with deterministic(self._config.threads, self._device):
            return [net.slice(subnet, calibrator.statistics(module, subnet)) for subnet in subnets]

    def _evaluate(self, modules: Sequence[GraphModule], entrants: Sequence[SubNet]) -> dict[str, Standing]:
        """What trained SubNets are now, by id; and a line for each."""
        standings = self._judge(modules, entrants)
        for id_, now in standings.items():
            logger.info("polish: SubNet %s %.1f %%, before %.1f %%", id_, now.accuracy, self._accuracies[id_])
            if self._is_taught:
                told = (now.divergence, self._divergences[id_])
                logger.info("polish: its answers are %.3f nats from the teacher's, before %.3f", *told)
        return standings

    def _judge(self, modules: Sequence[GraphModule], subnets: Sequence[SubNet]) -> dict[str, Standing]:
        """Where networks stand on the validation set, by id.

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
        teacher = self._teacher if self._is_taught else None
        return Jury(self._data.validation, teacher, self._net.head.independent)
