"""Whether shared weights have forgotten what the original network knew; a lower learning rate is the remedy.

A trained network that meets too high a rate loses its accuracy within an epoch, and a short training does not win it
back. The largest SubNet computes what the original network computes before training, so that each point it loses on the
same images is a loss of the training.
"""

import logging
from collections.abc import Mapping

import numpy.typing as npt

from autotailor.accuracy.evaluation import percent
from autotailor.finetuning.training.watch import Record
from autotailor.ir.space.metric import FloatArray
from autotailor.statistics import accuracy_drop
from autotailor.task.scores import Score

logger = logging.getLogger(__name__)
POINTS = 2.0
"""Loss of accuracy after the training from which a warning is worth a second training, points."""
ERRORS = 2.0
"""Standard errors that this loss must exceed."""
LEFT = 0.5
"""Share of the original network's accuracy above chance that must be left during the training. A good training loses
part of it while its rate is high, and wins it back while its rate falls: in ``benchmarks/learning_rates.py`` at least
0.56 were left after the first epoch at the default rate, and at most 0.2 at eight times that rate."""
FACTOR = 4.0
"""Ratio of the learning rate to the rate that the warnings propose."""
HIGHEST = 4e-3
"""Highest rate that the warnings propose: more than this no network that arrived trained has borne
(``docs/design/training.md``)."""
LARGEST = "largest_accuracy"  # column of the panel


def has_forgotten(before: FloatArray, now: FloatArray, groups: npt.ArrayLike) -> bool:
    """Whether the largest SubNet is clearly worse than the original network: by ``POINTS`` and by ``ERRORS``.

    Args:
        before: values of the original network for the images of the validation set ``[n]``.
        now: values of the largest SubNet for the same images ``[n]``.
        groups: number of the base image of each image ``[n]``.
    """
    drop, error = accuracy_drop(before, now, groups)
    return drop > POINTS and drop > ERRORS * error


def warn_if_worse(before: FloatArray, now: FloatArray, groups: npt.ArrayLike, lr: float, score: Score) -> None:
    """Warns where the largest SubNet has forgotten what the original network knows (``has_forgotten``).

    Args:
        before: values of the original network, as for ``has_forgotten``.
        now: values of the largest SubNet.
        groups: number of the base image of each image.
        lr: highest learning rate of the training.
        score: what is reported of these images.
    """
    if has_forgotten(before, now, groups):
        logger.warning(
            "finetune: the largest SubNet %s: it forgot while it learned to share its weights; %s, or train for more "
            "epochs",
            *(standing(percent(now), percent(before), "the validation images", score), _remedy(lr)),
        )


class EarlyWarning:
    """A record that warns once where the largest SubNet is far below the original network, and passes everything on.

    Args:
        record: takes the metrics of each epoch after this record has looked at them.
        before: values of the original network for the images of the panel ``[n]``.
        chance: mean value of guessing (``Task.chance``).
        lr: highest learning rate of the training.
        score: what is reported of these images.
    """

    def __init__(self, record: Record, before: FloatArray, chance: float, lr: float, score: Score) -> None:
        self._record, self._before, self._lr, self._score = record, percent(before), lr, score
        self._least = 100.0 * chance + LEFT * (self._before - 100.0 * chance)
        self._warned = False

    def __call__(self, metrics: Mapping[str, float], epoch: int) -> None:
        now = metrics.get(LARGEST)
        if now is not None and now < self._least and not self._warned:
            self._warned = True
            logger.warning(
                "finetune: after epoch %d the largest SubNet %s: the training has forgotten much, and wins it back "
                "late or never; %s",
                *(epoch + 1, standing(now, self._before, "the panel's images", self._score), _remedy(self._lr)),
            )
        self._record(metrics, epoch)


def standing(now: float, before: float, images: str, score: Score, name: str = "") -> str:
    """How good the largest SubNet is beside the original network, as the end of a sentence about the former.

    Args:
        now: score of the largest SubNet, percent, or its mean over pictures.
        before: the same of the original network.
        images: which, in words.
        score: of these images.
        name: of the numbers; "" is that of the mean over pictures.
    """
    if score.compares:
        return f"agrees with the original network for {now:.1f} % of {images}"
    return f"has {name or score.mean} {now:.1f} % on {images}, the original network {before:.1f} %"


def _remedy(lr: float) -> str:
    return f"lower finetune.lr (now {lr:g}, for instance to {min(lr / FACTOR, HIGHEST):g})"
