"""Parameters of polishing: section ``polish`` of the configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any

from pydantic import model_validator

from autotailor.accuracy.config import ACCURACY, DIVERGENCE, CalibrationConfig
from autotailor.finetuning.config import LARGEST, NAMED, SOURCES, DistillationConfig
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.joint.config import JointConfig
from autotailor.finetuning.training.config import LoopConfig
from autotailor.sections import Section
from autotailor.values import AboveZero, Flag, Natural, NotNegative, OneOf, Positive, UnfitError

NOT_OURS = {
    "epochs": "the epochs of each round stand in polish.rounds",
    "resume_from": "a race goes on from its own checkpoints only",
}
"""Parameters of other trainings that the section ``polish`` does not have, with the reason."""
CHECKED = 1024
"""Validation images on which SubNets are compared with their beginning, spread evenly over the set."""
BEST, ORIGINAL = "best", "original"
TEACHERS = (BEST, LARGEST, ORIGINAL)
"""Who can teach beside networks that are named by their source: the largest SubNet, the original network, or the latter
only where the former has forgotten."""
JUDGES = (ACCURACY, DIVERGENCE)
"""What can say which weights of a SubNet are better (``standing``)."""


class Round(Section, of="polish.rounds", error=TrainingError):
    """One round of the race (successive halving; Jamieson and Talwalkar, 2016).

    Attributes:
        candidates: SubNets of each budget that are trained in this round: the most accurate of the round before.
        epochs: of their training, which begins with the weights of the round before; 0 where ``images`` alone counts.
        images: training images that each of them sees at least; 0 where ``epochs`` alone count. So a small data set has
            as many steps as a large one.
    """

    candidates: Positive
    epochs: Natural = 0
    images: Natural = 0

    def __post_init__(self) -> None:
        if not self.epochs and not self.images:
            raise UnfitError("", "a round needs epochs, images or both")

    def parts(self, available: int, checks: int, batch: int) -> tuple[int, int]:
        """Number of parts in which a round is trained, and the images of each part at most.

        Without ``images`` a part is an epoch. With ``images`` it is shorter where an epoch holds more than one of
        ``checks`` equal parts of the round, in whole batches, so that a large data set need not be read whole.

        Args:
            available: images of an epoch.
            checks: parts of the round between which SubNets are compared with their beginning; 0 is one part.
            batch: images of a step.
        """
        if not self.images:
            return self.epochs, available
        total = max(self.images, self.epochs * available)
        each = min(available, batch * math.ceil(total / max(1, checks) / batch))
        return math.ceil(total / each), each


class PolishConfig(LoopConfig, of="polish", kw_only=True):
    """Training of single SubNets with weights of their own, taught by the largest SubNet or the original network.

    Attributes:
        name: name of the file in ``conf/polish``, for people. ``polish=short`` trains for fewer epochs, and
            ``polish=none`` leaves polishing out.
        epochs: of all rounds together; it follows from ``rounds``.
        rounds: the race. Each round trains, for each budget, the ``candidates`` most accurate SubNets of the round
            before for ``epochs``, or until each has seen ``images``, whichever is more; the first round begins with the
            candidates of the search. Without rounds, SubNets are exported with the weights that they inherit.
        joint: a training before the race, for ``epochs``, in which the candidates of the first round and the largest
            SubNet share weights, with which they begin if their mean accuracy on the validation set has risen. Its
            learning rate is ``lr_share`` times ``polish.lr``, for ``polish.optimizer``; all else is as in ``finetune``.
            With 0 epochs they begin with the weights of ``supernet.pt``.
        workers: SubNets that are trained side by side. Results do not depend on it.
        teacher: what teaches: ``largest``, the largest SubNet; ``original``, the original network; ``best``, the
            largest SubNet, unless it is 2 points and 2 standard errors worse than the original network on the
            validation set; or another network with its own weights, ``timm:NAME`` or ``package.module:factory``, as in
            ``finetune``.
        accept_chance: whether another network teaches even where it knows no more of the data than chance.
        compile: whether the teacher and the SubNets compute with kernels of ``torch.compile``, which needs a C++
            compiler, on a GPU Triton. It may save a part of each step, and costs seconds to minutes for each SubNet of
            each round; results differ by rounding.
        distillation: how SubNets learn from their teacher, as in ``finetune``.
        calibration: of the BatchNorm statistics that training begins with, as in ``finetune``.
        frozen: whether SubNets keep these statistics in training. Weights that arrive with the statistics of many
            images lose by those of few.
        features: weight of the distance between what the classifiers of SubNet and teacher read. A SubNet with fewer
            channels is compared with the first ones.
        streams: weight of the same distance between what the blocks of SubNet and teacher hand on, a mean over the
            blocks that the SubNet keeps.
        rates: learning rates that copies of SubNets try for a few steps. The one that helps most takes the place of
            ``lr``. Empty, ``lr`` holds.
        checks: how often in a round each SubNet is compared with its beginning, on up to 1,024 validation images. One
            that has become worse beyond chance stops, and keeps what it began with.
        judge: what says which weights of a SubNet are better on the validation set: right answers, or the divergence of
            all answers from the teacher's, which a few hundred pictures tell more of. With the latter no weights are
            taken that answer worse beyond chance.
    """

    name: str = ""
    epochs: Natural = 0
    rounds: tuple[Round, ...] = ()
    joint: JointConfig = field(default_factory=JointConfig)
    workers: Positive = 1
    teacher: Annotated[str, OneOf(*TEACHERS, *SOURCES, pattern=f"^({'|'.join(TEACHERS)}|{NAMED})$")] = BEST
    accept_chance: Flag = field(default=False, repr=False)  # not part of ``identity``
    compile: Flag = False
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    frozen: Flag = False
    features: NotNegative = 0.0
    streams: NotNegative = 0.0
    rates: tuple[AboveZero, ...] = ()
    checks: Natural = 0
    judge: Annotated[str, OneOf(*JUDGES)] = ACCURACY

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rates", tuple(sorted({float(each) for each in self.rates})))
        counts = [each.candidates for each in self.rounds]
        if counts != sorted(counts, reverse=True):
            raise UnfitError("rounds", f"{counts} candidates; a round cannot train more than the one before")

    @model_validator(mode="before")
    @classmethod
    def _ours(cls, given: Any) -> Any:
        for key, reason in NOT_OURS.items():
            if isinstance(given, Mapping) and key in given:
                raise UnfitError(key, f"{reason}; remove {key}")
        return given

    @property
    def has_own_teacher(self) -> bool:
        """Whether ``teacher`` names the source of a network, which is neither the original one nor a SubNet."""
        return all(self.teacher.partition(":"))

    @property
    def alone(self) -> PolishConfig:
        """The same race in one process, for a program that has not been started in several."""
        return replace(self, processes=1, nodes=1)

    def of_round(self, number: int, parts: int | None = None) -> PolishConfig:
        """The parameters of one round, counted from 0, as a training loop reads them; ``parts`` are its epochs."""
        epochs = self.rounds[number].epochs if parts is None else parts
        return replace(self, rounds=(), joint=JointConfig(), epochs=epochs, workers=1, name="")
