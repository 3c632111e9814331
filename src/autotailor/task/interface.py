"""The interface of every task: what networks answer, how right that is, and what they learn from.

A network turns pictures into outputs, one row for each picture, and a picture has a target. A task says what both mean.
Outputs are a tensor ``[n, ...]``, or a tuple where a network returns several.
Of each picture a task keeps a value from 0 to 1, how right the outputs are, and a loss. Whatever compares SubNets
(sensitivities, predictions, the search, races) computes with means of these values and losses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from autotailor.statistics import accuracy

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits
    from autotailor.ir.space.metric import FloatArray
    from autotailor.task.scores import Score

MAP = 4
"""Axes of a map ``[n, channels, h, w]``, the last two of which are its sides."""
Targets = npt.NDArray[Any]
"""Of pictures, one row for each: int64, or float32 where they are another network's outputs."""


@dataclass(frozen=True)
class Judgement:
    """What a task says of each of ``n`` pictures.

    Attributes:
        values: how right the outputs are, 0 to 1, ``[n]``; 0 where an output is NaN.
        losses: finite, float32 ``[n]``; the smaller the better, also between networks that are equally right.
        counts: what the score of a set is computed from (``Task.shares``), ``[n, ...]``; None where the score is the
            mean of the values.
    """

    values: torch.Tensor
    losses: torch.Tensor
    counts: torch.Tensor | None = None

    @property
    def kept(self) -> torch.Tensor:
        """What ``Task.shares`` reads of each picture, ``[n, ...]``."""
        return self.values if self.counts is None else self.counts


@dataclass(frozen=True)
class Lesson:
    """How a network learns from targets and from a teacher.

    Attributes:
        weight: of the teacher's outputs, 0 to 1; targets have the rest.
        temperature: by which outputs are divided before they are compared with the teacher's.
        smoothing: of the targets.
        independent: whether each output has a Sigmoid of its own (``Head.independent``).
    """

    weight: float = 0.0
    temperature: float = 1.0
    smoothing: float = 0.0
    independent: bool = False


@dataclass(frozen=True)
class Asked:
    """What a network says of the validation set, for the question whether it knows these data.

    Attributes:
        values: see ``Judgement``, ``[n]``.
        answers: see ``Task.answers``, one for each picture.
        ask: the network's answers to other images ``[m, 3, R, R]``.
    """

    values: FloatArray
    answers: Targets
    ask: Callable[[torch.Tensor], Targets]


class Task(ABC):
    """One kind of task. An object of it does not change, and serves all threads.

    Args:
        told: what the configuration or the data tell the task beside its name; "" for most tasks.

    Attributes:
        name: in the configuration (``data.task``).
        network: what a network for this task is called, with its article.
        reading: a sentence that says how outputs are read, the likeliest among them.
        target_axes: axes of the targets of a set of pictures, that of the pictures included.
        has_boxes: whether targets are boxes.
        has_numbers: whether targets are numbers ``[n, k]``, float32.
        names_outputs: whether classes of the pictures are the network's outputs; else they only judge.
        compares: whether targets hold the original network's answers beside labels (``beside``).
        logits: whether a final activation is set aside while networks learn (``Head``); else it is part of the answer.
        labelled: whether pictures can have targets of their own; else only the original network's answers are targets.
        at_side: whether outputs tell lengths in cells or pixels, so that a network says other numbers of a smaller
            picture; then a teacher looks at pictures of the size that its student sees.
        score: what is reported.
        agreement: what is reported where pictures have no targets of their own; ``score.compares`` is set in it.
    """

    name: ClassVar[str]
    network: ClassVar[str]
    reading: ClassVar[str]
    target_axes: ClassVar[int]
    has_boxes: ClassVar[bool] = False
    has_numbers: ClassVar[bool] = False
    names_outputs: ClassVar[bool] = True
    compares: ClassVar[bool] = False
    logits: ClassVar[bool] = True
    labelled: ClassVar[bool] = True
    at_side: ClassVar[bool] = False
    score: ClassVar[Score]
    agreement: ClassVar[Score]

    def __init__(self, told: str = "") -> None:
        self.told = told

    @property
    def has_maps(self) -> bool:
        """Whether a target is a map with a class for each pixel."""
        return self.target_axes == 3 and not self.has_boxes

    def check(self) -> None:  # noqa: B027  # most tasks are told nothing
        """Raises TaskError where what the task is told cannot be used."""

    def read(self, outputs: Any, side: int) -> Any:
        """What all methods but ``loss`` take as outputs, which are of images of some side in pixels; here the same."""
        return outputs

    @abstractmethod
    def judge(self, outputs: Any, targets: torch.Tensor) -> Judgement:
        """Values and losses of pictures.

        Args:
            outputs: of a network, with or without its final activation: values must be the same for both.
            targets: of the pictures, on the same device.
        """

    @abstractmethod
    def answers(self, outputs: Any) -> torch.Tensor:
        """The targets that outputs without their final activation stand for; unlabelled pictures get these."""

    def beside(self, labels: Targets, groups: npt.NDArray[np.int64], answers: Targets) -> Targets:
        """Targets of a set from the original network's answers, with the pictures' labels where ``compares`` is set.

        Args:
            labels: of the pictures; ``UNKNOWN`` where they have none.
            groups: base picture of each.
            answers: of the original network; here they are the targets.
        """
        return answers

    @abstractmethod
    def agree(self, outputs: Any, others: Any) -> torch.Tensor:
        """How far two networks say the same of each picture, 0 to 1, ``[n]``; both with or both without activation."""

    @abstractmethod
    def loss(self, outputs: Any, targets: torch.Tensor, teacher: Any, lesson: Lesson) -> torch.Tensor:
        """What training minimises, the mean over the batch, a scalar.

        Args:
            outputs: without their final activation, with gradient.
            targets: of the pictures; of mixed pictures a share of each target, float32. They are not looked at where
                the teacher has all the weight.
            teacher: its outputs, without gradient; None where targets alone teach.
            lesson: how both count.
        """

    def apart(self, outputs: Any, others: Any, lesson: Lesson) -> torch.Tensor:
        """How far outputs are from another network's, picture by picture: the loss of a student of it, float32 ``[n]``.

        Args:
            outputs: without their final activation.
            others: of the other network, without it as well; perhaps of pictures of another size.
            lesson: in which the other network has all the weight, so that no target is looked at.
        """
        import torch

        from autotailor.task.rows import bounded, one_by_one

        rows = zip(one_by_one(outputs), one_by_one(others), strict=True)
        return bounded(torch.stack([self.loss(own, torch.empty(0), other, lesson) for own, other in rows]).float())

    @abstractmethod
    def chance(self, targets: Targets) -> float:
        """Mean of the values of a network that knows how often targets occur, and does not look at the pictures."""

    @abstractmethod
    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """Targets of some pictures, with which the user's loss is tried, and what they are in words."""

    @abstractmethod
    def misfit(self, outputs: Any, classes: int, images: str) -> str:
        """Why outputs for two images cannot be those of this task, as the end of a sentence; "" where they can.

        Args:
            outputs: of a network, without their final activation.
            classes: of the data.
            images: whose the data are, in words.
        """

    @abstractmethod
    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """The reason not to trust a network with these data, with the cause if one is found; "" where it is good.

        Args:
            evaluated: what the network says of the validation set.
            data: the splits, with targets.
            resolution: side to which images are resized for the network, in pixels; 0 leaves their size.
            name: of the network.
        """

    def no_better(
        self,
        evaluated: Asked,
        data: DataSplits,
        resolution: int,
        name: str,
        guess: str,
        check: str,
        chance: float | None = None,
    ) -> str:
        """``doubt`` of a network that is no better than chance by more than two standard errors; "" of others.

        Args:
            evaluated: see ``doubt``.
            data: see ``doubt``.
            resolution: see ``doubt``.
            name: of the network, and of what is said of it: "NETWORK has SCORE".
            guess: what has the score of chance.
            check: what else may be wrong, up to "on" or "trained on", behind which the images are named.
            chance: 0 to 1; None takes that of the task.
        """
        chance = self.chance(data.validation.labels) if chance is None else chance
        value, error = self.total(evaluated.values, data.validation.groups)
        if value > 100.0 * chance + 2.0 * np.nan_to_num(error):
            return ""
        return (
            f"{name} {value:.1f} % on the validation images of data {data.name}, and {guess} has {100.0 * chance:.1f} "
            f"%; check that {check} {data.read(resolution)}, normalised by mean {list(data.mean)} and std "
            f"{list(data.std)}"
        )

    def painted(self, picture: Any, target: torch.Tensor, colours: Mapping[str, tuple[int, ...]]) -> Any:
        """A picture with what a target says of its places; None where targets say nothing of places, as here.

        Args:
            picture: of PIL, which stays as it is.
            target: of this picture, its own or an answer.
            colours: of each class, red, green and blue, in the order of the classes.
        """
        return None

    def shares(self, kept: npt.NDArray[Any]) -> FloatArray:
        """What each picture adds to the score of a set: numbers ``[n]`` whose mean is the score; here the values.

        They are the numbers by which the mean moves where a picture is drawn once more, so that their scatter gives
        the score's standard error, and that of the difference of two networks.

        Args:
            kept: of all pictures of the set ``[n, ...]``, see ``Judgement``.
        """
        return np.asarray(kept, dtype=np.float64)

    def total(self, shares: FloatArray, groups: npt.NDArray[np.int64]) -> tuple[float, float]:
        """The reported score and its standard error, in percent; base pictures are the independent draws.

        Args:
            shares: of the pictures ``[n]``, see ``shares``.
            groups: base picture of each ``[n]``.
        """
        return accuracy(shares, groups)
