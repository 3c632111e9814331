"""Whether a classifier knows the user's classes, in their order, and the user's pixels.

A trained network with an accuracy no better than chance was most often trained with another order of the classes,
another normalisation of pixels, or BGR images. Each of these causes can be found: the predictions become right under
another order of the classes, or with another normalisation of the images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from autotailor.data.excerpt import excerpt, spread
from autotailor.data.splits import DataSplits
from autotailor.task.interface import Asked

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Colours = tuple[float, float, float]

LEVEL = 1e-3  # of significance
DRAWN = 9_999  # tables of predictions and labels by chance
FEW_CLASSES = 32  # up to which such tables are drawn
DOUBT = 0.05  # of significance, from which on too few images may be to blame
GAIN = 0.1  # accuracy that another order of classes or other pixels must gain to be reported
MOSTLY = 0.5  # accuracy under another order of the classes from which that order counts as the cause
CONTENT = 0.8  # accuracy from which other normalisations are not tried
TRIED = 256  # number of images for trying other normalisations
FOLDS = 10  # number of parts of the images; the class order for a part is found on the other parts
LISTED = 8  # classes in a message
NORMALISATIONS: dict[str, tuple[Colours, Colours]] = {
    "pixels from 0 to 1": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "pixels from -1 to 1": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "pixels from 0 to 255": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
    "pixels from 0 to 255 without ImageNet's mean": ((0.485, 0.456, 0.406), (1 / 255, 1 / 255, 1 / 255)),
}


@dataclass(frozen=True)
class Answers:
    """The predictions of a network for labelled images.

    Attributes:
        predicted, labels: class of each image, ``[n]``.
        groups: base image of each image, ``[n]``.
        classes: number of classes.
    """

    predicted: IntArray
    labels: IntArray
    groups: IntArray
    classes: int

    @property
    def right(self) -> BoolArray:
        """Whether each image is classified correctly, ``[n]``."""
        return np.asarray(self.predicted == self.labels)

    @property
    def chance(self) -> float:
        """Share of the images that would be right if predictions were independent of labels (Cohen, 1960)."""
        predicted, true = (np.bincount(x, minlength=self.classes) / len(x) for x in (self.predicted, self.labels))
        return float(predicted @ true)

    @property
    def count(self) -> int:
        """Number of independent images: images of one base image count as one."""
        return len(np.unique(self.groups))

    def above_chance(self, level: float = LEVEL) -> bool:
        """Whether more images are right than chance explains; images of one base image count as one.

        Chance draws each image alone (a binomial test), or deals out the predictions that were made among the images
        anew. The latter also tells a network that finds a rare class from one that does not know it.
        """
        if _exceeds(self.right.mean(), self.chance, self.count, level):
            return True
        return bool(self.right.mean() > self.chance) and self._agrees(level)

    def _agrees(self, level: float) -> bool:
        """Whether fewer than ``level`` of all tables with the same counts of predictions and labels are as often right.

        Tables of few classes are drawn. More than ``FEW_CLASSES`` are not tested, because single images are then hardly
        ever right by chance, and the binomial test misses nothing.
        """
        from scipy.stats import random_table

        _, first = np.unique(self.groups, return_index=True)
        predicted, true = self.predicted[first], self.labels[first]
        classes = np.union1d(predicted, true)
        if len(classes) > FEW_CLASSES:
            return False
        rows, columns = ((kind[None, :] == classes[:, None]).sum(axis=1) for kind in (predicted, true))
        drawn = random_table(rows, columns, seed=0).rvs(DRAWN)
        by_chance = np.trace(drawn, axis1=1, axis2=2) >= np.sum(predicted == true)
        return bool((1 + by_chance.sum()) / (1 + DRAWN) < level)

    def matched(self) -> BoolArray:
        """Whether each image is right under the best order of the classes, found on the other folds, ``[n]``."""
        fold = np.unique(self.groups, return_inverse=True)[1].ravel() % FOLDS
        right = np.zeros(len(self.labels), dtype=np.bool_)
        for part in range(FOLDS):
            order = self.order(fold != part)
            right[fold == part] = (order[self.predicted] == self.labels)[fold == part]
        return right

    def order(self, rows: BoolArray | slice = slice(None)) -> IntArray:
        """The order of the classes with the most correct predictions for some images, ``[classes]``.

        Returns:
            For each class of the network, the class of the data.
        """
        from scipy.optimize import linear_sum_assignment

        confusion = 1e-3 * np.eye(self.classes)  # classes without predictions keep their number
        np.add.at(confusion, (self.predicted[rows], self.labels[rows]), 1.0)
        return np.asarray(linear_sum_assignment(confusion, maximize=True)[1], dtype=np.int64)


def _exceeds(share: float, expected: float, count: int, level: float = LEVEL) -> bool:
    """Whether a share of independent trials lies significantly above an expected one."""
    from scipy.stats import binomtest

    hits = round(float(share) * count)
    return bool(binomtest(hits, count, min(1.0, expected), alternative="greater").pvalue < level)


def complaint(evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
    """See ``Task.doubt``."""
    answers = Answers(evaluated.answers, data.validation.labels, data.validation.groups, data.num_classes)
    message = f"{name} is right for {answers.right.mean():.1%} of the validation images of data {data.name}"
    matched = answers.matched()
    moved = _better(matched, answers)
    order = f"would be for {matched.mean():.1%} if its classes had another order: {_moved(answers.order())}"
    if moved and matched.mean() > MOSTLY:
        return f"{message}, and {order}; give the data's classes the network's order (number its folders)"
    if answers.right.mean() < CONTENT and not data.signal and (cause := _other_pixels(answers, evaluated.ask, data)):
        return f"{message}; {cause}"
    if answers.above_chance():
        return ""
    message = f"{message}, by chance it would be for {answers.chance:.1%}" + (f", and {order}" if moved else "")
    if answers.above_chance(DOUBT) or answers.right.all():
        what = "images" if answers.count == len(answers.labels) else "groups of images (data.groups)"
        message = (
            f"{message}, and {answers.count} {what} are too few to tell these apart for sure (a larger validation set "
            f"could, as with data.fractions=[0.6,0.2,0.2])"
        )
    return (
        f"{message}; check that it was trained on these classes, in this order (folders are sorted by name), and on "
        f"{data.read(resolution)}, normalised by mean {_short(data.mean)} and std {_short(data.std)}"
    )


def _better(other: BoolArray, answers: Answers) -> bool:
    """Whether other answers for the same images gain significantly (McNemar, 1947) and by at least ``GAIN``."""
    won, lost = int((other & ~answers.right).sum()), int((answers.right & ~other).sum())
    if other.mean() - answers.right.mean() < GAIN:
        return False
    groups = len(np.unique(answers.groups)) / len(answers.groups)
    return _exceeds(won / (won + lost), 0.5, max(1, round(groups * (won + lost))))


def _moved(order: IntArray) -> str:
    """The classes of the network that have another number in the data."""
    moved = [f"{predicted} is {true}" for predicted, true in enumerate(order.tolist()) if predicted != true]
    return "the network's class " + ", ".join(moved[:LISTED]) + (" ..." if len(moved) > LISTED else "") + " in the data"


def _other_pixels(answers: Answers, ask: Callable[[torch.Tensor], IntArray], data: DataSplits) -> str:
    """A normalisation or order of colours with which the network classifies the images; "" where none is found."""
    chosen = spread(len(answers.labels), TRIED)
    pixels = excerpt(data.validation, TRIED).images * _channels(data.std) + _channels(data.mean)
    now = Answers(answers.predicted[chosen], answers.labels[chosen], answers.groups[chosen], answers.classes)
    best, share = "", 0.0
    for colours in ("RGB", "BGR"):
        ordered = pixels if colours == "RGB" else pixels.flip(1)
        for name, (mean, std) in NORMALISATIONS.items():
            other = replace(now, predicted=ask((ordered - _channels(mean)) / _channels(std)))
            if other.above_chance() and _better(other.right, now) and other.right.mean() > share:
                share = float(other.right.mean())
                where = f" and {colours} images (export a network that takes RGB)" if colours != "RGB" else ""
                best = f"{name}, mean {_short(mean)} and std {_short(std)}{where}"
    if not best:
        return ""
    return f"with {best}, it is right for {share:.1%} of {len(chosen)} of them: set data.mean and data.std to these"


def _channels(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(tuple(values)).reshape(1, -1, 1, 1)


def _short(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"
