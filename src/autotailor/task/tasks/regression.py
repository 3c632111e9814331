"""Regression: one or more numbers for each picture or signal, in the unit of the user's targets.

With the targets t and the outputs y of the number k, and the standard deviation s_k of its targets for training, the
error of a picture is e_k = (y_k - t_k) / s_k. The score is computed from the pictures of a set together,

    R² = mean over k of R²_k,    R²_k = 1 - E_k / T_k,    E_k = sum of e_k²,    T_k = sum of (t_k - mean(t_k))² / s_k².

It is no mean over pictures. So the value of a picture, with which sensitivities, predictions and the search compute, is

    closeness = mean over k of 1 - min(1, e_k² / FAR²).

Where no error is beyond FAR standard deviations, its mean is a straight line of the squared errors: SubNets have the
order that R² gives them, and a few absurd outputs do not decide about a mean. What picture i adds to R² is the R² of
all plus its first-order influence (the infinitesimal jackknife; Efron, 1982),

    s_i = R² + n mean over k of ((1 - R²_k) (t_ik - mean(t_k))² / s_k² - e_ik²) / T_k.

The mean of s_i is R², and their scatter is what drawing the pictures anew would give. A network's final activation is
part of its answer. Means and deviations of the targets stand behind the task's name (``labels.scaled``).
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.labels import REGRESSION
from autotailor.task.interface import Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import register
from autotailor.task.rows import bounded, first, single
from autotailor.task.scores import Score

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits
    from autotailor.ir.space.metric import FloatArray

FAR = 2.0
"""Standard deviations of the targets from which on a larger error is no worse in a value, and grows evenly in a loss.
Of 60 SubNets of a network for pendulums, all had the same order by closeness and by R²; with 1, Kendall's tau was 0.91.
"""
MOST = 1000.0
"""Standard deviations that count for a larger error, and for an output that is no number."""
CONSTANT = 1e-12
"""A smaller scatter of targets counts as this."""
MOSTLY = 0.5
"""R² of outputs that are moved and stretched, from which on another unit counts as the cause."""
MEAN = "closeness"
HOW = (
    f"Predictions, sensitivities and the search compute with {MEAN}: 1 less the squared error over the variance of the "
    f"targets, where {FAR:g} standard deviations and more count as 0, as the mean over outputs and pictures."
)


@register
class Regression(Task):
    """Outputs are numbers ``[n, k]``, or ``[n]``, in the unit of the targets ``[n, k]``, float32.

    Told are means and standard deviations of the targets, ``[[k numbers], [k numbers]]`` in JSON.
    """

    name = REGRESSION
    network = "a network for regression"
    reading = "Each output is a number in the unit of the targets that the network was trained with."
    target_axes = 2
    has_numbers = True
    logits = False
    score = Score(
        "R²",
        "most exact",
        "R²: 1 less the squared error over the variance of the targets, of all pictures together; the mean over the "
        f"outputs. {HOW}",
        mean_name=MEAN,
    )
    agreement = Score(
        "R² with the original network",
        "most faithful",
        "The pictures have no targets: the outputs of the original network stand for them. R²: 1 less the squared "
        f"distance from them over their variance, of all pictures together; the mean over the outputs. {HOW}",
        compares=True,
        mean_name=f"{MEAN} to the original network",
    )

    @cached_property
    def _scale(self) -> FloatArray:
        """Means and standard deviations of the targets ``[2, k]``; none where nothing was told."""
        return np.array(json.loads(self.told) if self.told else [[], []], dtype=np.float64)

    def judge(self, outputs: Any, targets: torch.Tensor) -> Judgement:
        """See Task: closeness, and the mean of e_k²; counts are e_k and t_k less its mean over s_k, ``[n, 2, k]``."""
        import torch

        y, t = _rows(outputs).double(), targets.double()
        means, spreads = self._means_and_spreads(t)
        errors = ((y - t) / spreads).nan_to_num(nan=MOST).clamp(-MOST, MOST)
        values = _closeness(errors).where(~y.isnan().any(1), 0.0)
        kept = torch.stack([errors, (t - means) / spreads], 1)
        return Judgement(values, bounded(errors.square().mean(1).float()), kept)

    def answers(self, outputs: Any) -> torch.Tensor:
        """See Task: the outputs themselves ``[n, k]``."""
        return _rows(outputs)

    def agree(self, outputs: Any, others: Any) -> torch.Tensor:
        """See Task: closeness of the outputs to the others."""
        t = _rows(others).double()
        return _closeness((_rows(outputs).double() - t) / self._means_and_spreads(t)[1])

    def loss(self, outputs: Any, targets: torch.Tensor, teacher: Any, lesson: Lesson) -> torch.Tensor:
        """See Task: Huber's loss of e_k (Huber, 1964), from the targets and from the teacher's outputs."""
        import torch
        from torch.nn import functional

        y, parts = _rows(outputs), []
        weight = 0.0 if teacher is None else lesson.weight
        weighted = [(1 - weight, targets)] if weight < 1 else []
        weighted += [(weight, _rows(teacher))] if weight > 0 else []
        for share, each in weighted:
            means, spreads = (number.to(y.dtype) for number in self._means_and_spreads(each.double()))
            standard_y, standard_t = ((number - means) / spreads for number in (y, each.to(y.dtype)))
            parts.append(share * functional.huber_loss(standard_y, standard_t, delta=FAR))
        return torch.stack(parts).sum()

    def chance(self, targets: Targets) -> float:
        """See Task: a network that returns the mean of the targets for every picture."""
        import torch

        t = torch.from_numpy(np.asarray(targets, dtype=np.float64))
        return float(self.judge(self._means_and_spreads(t)[0].expand_as(t), t).values.mean())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task."""
        import torch

        return torch.arange(count * classes).reshape(count, classes).float(), "numbers, float32 [b, outputs]"

    def misfit(self, outputs: Any, classes: int, images: str) -> str:
        """See Task; without targets the number of outputs is not known."""
        tensor = single(outputs)
        count = tensor.numel() // 2 if tensor is not None else 0
        if count and count == (classes or count):
            return ""
        shape = f"{len(outputs)} tensors" if tensor is None else str(list(tensor.shape))
        return (
            f"gives {shape} for 2 images, expected one number for each target, [2, {classes}]: {images} has {classes} "
            f"targets; take those that the network was trained on, or name the output that has them (model.output)"
        )

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task: whether the network is closer than the mean of the targets, by more than two standard errors."""
        guess = "the mean of the targets, returned for every picture,"
        check = "it was trained on these targets, in this order and unit, and on"
        reason = self.no_better(evaluated, data, resolution, f"{name} has {MEAN}", guess, check)
        return reason and reason + _unit(np.asarray(evaluated.answers, np.float64), np.asarray(data.validation.labels))

    def shares(self, kept: npt.NDArray[Any]) -> FloatArray:
        """See Task: the influence of pictures on R², from counts ``[n, 2, k]``."""
        errors, targets = np.asarray(kept, dtype=np.float64).swapaxes(0, 1)
        squares, scatter = np.square(errors), np.square(targets - targets.mean(axis=0))
        total = np.maximum(scatter.sum(axis=0), CONSTANT)
        lost = squares.sum(axis=0) / total
        return np.asarray((1 - lost).mean() + len(errors) * ((lost * scatter - squares) / total).mean(axis=1))

    def _means_and_spreads(self, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and standard deviations ``[k]`` that were told; else those of some numbers ``[n, k]``."""
        import torch

        if self._scale.size:
            means, spreads = torch.from_numpy(self._scale).to(like)
            return means, spreads
        return like.mean(0), like.std(0, correction=0).clamp(min=CONSTANT)


def _rows(outputs: Any) -> torch.Tensor:
    """The numbers of each picture, ``[n, k]``."""
    tensor = first(outputs)
    return tensor.flatten(1) if tensor.ndim > 1 else tensor[:, None]


def _closeness(errors: torch.Tensor) -> torch.Tensor:
    """Closeness ``[n]`` of errors ``[n, k]`` in standard deviations."""
    return (1 - (errors / FAR).square().clamp(max=1)).mean(1)


def _unit(y: FloatArray, t: FloatArray) -> str:
    """Whether the outputs fit where each is moved and stretched, as the end of a sentence; "" where they do not."""
    pairs = [np.corrcoef(one, other)[0, 1] for one, other in zip(y.T, t.T, strict=True) if one.std() > 0]
    fitted = float(np.square(pairs).sum() / t.shape[1])
    if not fitted > MOSTLY:
        return ""
    lines = (np.polyfit(one, other, 1) for one, other in zip(y.T, t.T, strict=True) if one.std() > 0)
    formulas = ", ".join(f"{slope:.4g} y + {start:.4g}" for slope, start in lines)
    return (
        f". R² would be {100 * fitted:.1f} % with {formulas} in the place of each output y: the network has another "
        f"unit, or standardised targets; give the targets that it was trained with, or put this line behind its output"
    )
