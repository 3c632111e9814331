"""Trains a SuperNet on for a few of its SubNets, which share its weights.

Weights that serve all SubNets of a space serve each of them less well than weights of its own. The members of a pool
must share their weights, but nobody else has to: trained on for the members alone, the shared weights regain most of
what weights of their own would give (``docs/results/joint-training.md``), in one training for all of them. Candidates
that will get weights of their own begin with such weights.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.compute.accelerator import resolve
from autotailor.compute.compilation import check_compiler
from autotailor.data.augmentation.stream import augmented
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import LARGEST, FinetuneConfig
from autotailor.finetuning.errors import DivergenceError
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.lesson import teacher_alone
from autotailor.finetuning.panel import accuracies_of, watch_subnets
from autotailor.finetuning.pretraining import training_metrics
from autotailor.finetuning.sampling.strategy import Strategy
from autotailor.finetuning.training.later_epochs import FIRST_EPOCH, LaterEpochs
from autotailor.finetuning.training.processes.group import join
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.watch import Record, no_record
from autotailor.finetuning.weight_sharing import teacher_of, train_shared
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.task.registry import of, score_of

logger = logging.getLogger(__name__)

LARGEST_SHARE = 0.25
"""Probability of the largest SubNet, as in ``mixed``: it may teach the others, and runs on a device without load."""


@dataclass(frozen=True)
class Purpose:
    """What a SuperNet is trained on for, in the words of messages.

    Attributes:
        rule: that trains.
        section: of the configuration, which has ``epochs`` and ``lr_share``.
        subnets: what the SubNets are called.
        title: of the progress bar and of messages; the checkpoint is named after it.
    """

    rule: str
    section: str
    subnets: str
    title: str


POOL = Purpose("train_pool", "pool", "members", "train_pool")


@dataclass(frozen=True)
class JointResult:
    """A SuperNet whose weights some SubNets share.

    Attributes:
        net: with the trained weights, or with those of before where the training has not raised the mean accuracy.
        before, after: id of each SubNet to its accuracy on the validation set, percent, before and after the training.
        images: that the training has seen.
        history: one row for each epoch.
    """

    net: SuperNet
    before: Mapping[str, float]
    after: Mapping[str, float]
    images: int
    history: list[Row]

    @property
    def means(self) -> tuple[float, float]:
        """Mean accuracy of the SubNets before and after the training, percent."""
        return fmean(self.before.values()), fmean(self.after.values())

    @property
    def gain(self) -> float:
        """By how much the mean accuracy of the SubNets rose, points; not above zero where the training was in vain."""
        before, after = self.means
        return after - before

    def metrics(self) -> dict[str, float]:
        """Mean accuracies of the SubNets on the validation set, and the images of the training."""
        before, after = self.means
        return {"accuracy_before": before, "accuracy_validation": after, "images": self.images}

    def document(self) -> dict[str, Any]:
        """Plain data for JSON: what was trained, and the accuracy of each SubNet before and after, percent."""
        accuracies = {id_: {"before": self.before[id_], "after": self.after[id_]} for id_ in self.before}
        return {"images": self.images, "is_better": self.gain > 0, "accuracy_validation": accuracies}

    def said(self, score: str, subnets: str = POOL.subnets) -> str:
        """One sentence on the result; ``score`` names the share of right answers."""
        before, after = self.means
        whose = f"the {subnets} ({len(self.before)})"
        return f"mean {score} of {whose} on the validation set: {before:.1f} %, then {after:.1f} %"


def train_jointly(
    net: SuperNet,
    original: SuperNet,
    data: DataSplits,
    subnets: Sequence[SubNet],
    config: FinetuneConfig,
    workdir: Path,
    record: Record = no_record,
    purpose: Purpose = POOL,
) -> JointResult:
    """Trains shared weights for some SubNets alone; continues from its checkpoint in ``workdir``.

    The largest SubNet is trained in a quarter of the steps (``listed``). Where ``config.teacher`` is ``largest``, it
    teaches the others as it is at each step, and learns from what it was; else the original network teaches, or the one
    that ``config.teacher`` names.

    Args:
        net: the trained SuperNet; it is not changed.
        original: the SuperNet as compiled, whose largest SubNet is the original network.
        data: the splits; data without labels need the original network's answers (``accuracy.with_labels``).
        subnets: at least one, distinct.
        config: of the training; ``strategy``, ``sampling`` and ``sort`` have no effect.
        workdir: folder of the checkpoint; made if missing.
        record: takes the metrics of each epoch as soon as the epoch ends.
        purpose: of the training, for messages and the name of the checkpoint.

    Raises:
        DivergenceError: the loss is no longer a finite number, or jumped further than ``config.spike`` allows.
        TrainingError: the teacher cannot be used.
    """
    config = teacher_alone(config, data)
    group = join(config)  # first: it gives each process its GPU
    device = resolve(config.accelerator)
    if config.compile:
        check_compiler(device, "finetune.compile")
    teacher = Teacher.largest_of(net if config.teacher == LARGEST else original, device, logits=of(data).logits)
    with deterministic(config.threads, device):
        teacher = teacher_of(teacher, data, config, device)
    calibrator = Calibrator(data, config.calibration)

    def evaluated(module: ElasticModule) -> dict[str, float]:
        evaluator = Evaluator(module.eval(), calibrator, data.validation, config.workers)
        with deterministic(config.threads, device):
            accuracies = accuracies_of(evaluator, subnets, group)
        return {subnet.id: accuracies[subnet] for subnet in subnets}

    before = evaluated(net.module().to(device))
    begun = net.recalibrated(1.0)  # the statistics that came with the network are not those of trained weights
    module = begun.module(logits=of(data).logits).to(device)
    strategy = Listed(subnets, config.subnets)
    watch = watch_subnets(module, data, config, None, record, subnets)
    stream = LaterEpochs(augmented(data, config.augmentation, config.seed), FIRST_EPOCH)
    path, others = Path(workdir) / f"{purpose.title}.ckpt", [teacher.network.state_dict()]
    try:
        history = train_shared(begun, module, data, stream, config, teacher, strategy, watch, path, others)
    except DivergenceError as error:
        remedy = f"lower {purpose.section}.lr_share (the rate is {config.lr:g}), or set {purpose.section}.epochs to 0"
        raise DivergenceError(error.happened, remedy) from error
    with deterministic(config.threads, device):
        trained = begun.absorb(module, calibrator.statistics(module.eval(), net.largest()))
    after = evaluated(trained.module().to(device))
    images = int(training_metrics(history, data, config.batch_size)["images"])
    result = JointResult(trained, before, after, images, history)
    if result.gain > 0:
        return result
    logger.warning(
        "%s: the mean %s of the %s was %.1f %% with the weights that all SubNets share, and is %.1f %% after the "
        "training, so that the former stay; lower %s.lr_share, or set %s.epochs to 0",
        *(purpose.rule, score_of(data).mean, purpose.subnets, *result.means, purpose.section, purpose.section),
    )
    return replace(result, net=net)


class Listed(Strategy):
    """Each SubNet of a step is the largest or one of a list, all of the list equally likely.

    No configuration names this strategy.

    Args:
        subnets: the list, of one space.
        count: SubNets per step.
    """

    def __init__(self, subnets: Sequence[SubNet], count: int) -> None:
        super().__init__(subnets[0].space, {}, count)
        self._subnets = tuple(subnets)

    @property
    def identity(self) -> tuple[str, ...]:
        return tuple(subnet.id for subnet in self._subnets)

    def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
        return tuple(self._one(random) for _ in range(self.count))

    def _one(self, random: np.random.Generator) -> SubNet:
        if random.random() < LARGEST_SHARE:
            return self.largest()
        return self._subnets[int(random.integers(len(self._subnets)))]
