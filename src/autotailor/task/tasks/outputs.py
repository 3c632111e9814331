"""Outputs of any shape, without labels: maps of segmentation, raw heads of a detector, depths, embeddings.

Nothing is known of what the outputs mean, so that the original network is the measure. With its outputs t, and those y
of another network, the distance of a picture is the mean over the outputs k of

    d_k = |y_k - t_k|^2 / |t_k - mean(t_k)|^2,    value = mean over k of 1 - min(1, d_k).

The mean is that of each channel of a map ``[n, c, h, w]``, because what is the same all over a map says nothing of the
picture, and else that of an output. So a value is 1 where both return the same, and 0 where the means would be as near.
Maps are compared at ``GRID`` x ``GRID`` places, the same for every resolution; all other outputs as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from autotailor.task.errors import TaskError
from autotailor.task.interface import MAP, Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import register
from autotailor.task.rows import bounded
from autotailor.task.scores import Score

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits

GRID = 16
"""Places of each side of a map at which outputs are compared."""
CONSTANT = 1e-6
"""Variance below which an output is constant; distances are then measured in this."""
FIDELITY = Score(
    "fidelity",
    "most faithful",
    "Fidelity: 1 less the squared distance from the original network's outputs over their variance, as the mean over "
    "outputs and pictures.",
    compares=True,
)


@register
class Outputs(Task):
    """Outputs are a tensor ``[n, ...]`` or a tuple of several; targets are those of the original network.

    Targets are float32 ``[n, outputs, channels, places]``, with NaN behind an output's last channel and place. What is
    no map has one channel.
    """

    name = "outputs"
    network = "a network"
    reading = "The outputs mean what they mean in the original network."
    target_axes = 4
    labelled = False
    score, agreement = FIDELITY, FIDELITY

    def judge(self, outputs: Any, targets: torch.Tensor) -> Judgement:
        """See Task: how near the outputs are to the original network's, and their distance from these."""
        tensors = _places(outputs)
        if targets.ndim != self.target_axes or targets.shape[1] != len(tensors):
            raise TaskError(
                f"data.task is outputs: targets have shape {list(targets.shape)} and the network returns "
                f"{len(tensors)} tensors; take targets of this network (accuracy.with_labels)"
            )
        return _judged(tensors, [targets[:, k, : y.shape[1], : y.shape[2]] for k, y in enumerate(tensors)])

    def answers(self, outputs: Any) -> torch.Tensor:
        """See Task: the outputs themselves, at the places where they are compared."""
        import torch
        from torch.nn import functional

        tensors = _places(outputs)
        channels, places = (max(y.shape[axis] for y in tensors) for axis in (1, 2))
        pads = ((0, places - y.shape[2], 0, channels - y.shape[1]) for y in tensors)
        padded = [functional.pad(y, pad, value=float("nan")) for y, pad in zip(tensors, pads, strict=True)]
        return torch.stack(padded, 1)

    def agree(self, outputs: Any, others: Any) -> torch.Tensor:
        """See Task: how near the outputs are to the others."""
        return _judged(_places(outputs), _places(others)).values

    def loss(self, outputs: Any, targets: torch.Tensor, teacher: Any, lesson: Lesson) -> torch.Tensor:
        """See Task: the distance from the teacher's outputs at all places, over the batch; else from the targets."""
        import torch

        if teacher is None:
            return self.judge(outputs, targets).losses.mean()
        pairs = [(_sized(y, t), t) for y, t in zip(_tuple(outputs), _tuple(teacher), strict=True)]
        return torch.stack([_distance(_together(y), _together(t)) for y, t in pairs]).mean()

    def chance(self, targets: Targets) -> float:
        """See Task: a network that returns the mean of each number over all pictures."""
        import torch

        means = np.broadcast_to(targets.mean(axis=0), targets.shape).copy()
        return float(1 - _distance(torch.from_numpy(means), torch.from_numpy(targets)).clamp(max=1).mean())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task; those of a network with one output."""
        import torch

        numbers = torch.arange(count * classes).reshape(count, 1, 1, classes)
        return numbers.float(), "outputs, float32 [b, outputs, channels, places]"

    def misfit(self, outputs: Any, classes: int, images: str) -> str:
        """See Task: nothing, because outputs may have any shape."""
        return ""

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task: nothing, because the network is its own measure."""
        return ""


def _tuple(outputs: Any) -> tuple[torch.Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _places(outputs: Any) -> list[torch.Tensor]:
    """Each output at the places where it is compared: float32 ``[n, channels, places]``."""
    from torch.nn import functional

    size = [GRID, GRID]
    return [
        functional.interpolate(y.float(), size, mode="bilinear").flatten(2)
        if y.ndim == MAP
        else y.float().flatten(1).unsqueeze(1)
        for y in _tuple(outputs)
    ]


def _together(output: torch.Tensor) -> torch.Tensor:
    """An output for a batch as one picture: float32 ``[channels, places]``, with one channel of what is no map."""
    return output.float().movedim(1, 0).flatten(1) if output.ndim == MAP else output.float().reshape(1, -1)


def _sized(outputs: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Outputs of one resolution at that of others, where both are maps."""
    from torch.nn import functional

    if outputs.ndim != MAP or outputs.shape == others.shape:
        return outputs
    return functional.interpolate(outputs, others.shape[2:], mode="bilinear")


def _distance(y: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The squared distance over the variance ``[...]``, of ``[..., channels, places]``; NaN of t are no numbers.

    Where no channel says anything of its places, as in maps of one pixel, the variance is that of the whole output.
    """
    import torch

    def mean(values: torch.Tensor) -> torch.Tensor:
        return values.flatten(-2).nanmean(-1)

    inside = mean((t - t.nanmean(-1, keepdim=True)).square())
    whole = mean((t - mean(t)[..., None, None]).square())
    spread = torch.where(inside > CONSTANT, inside, whole).clamp(min=CONSTANT)
    is_number = ~t.isnan()
    return (y - t).square().where(is_number, 0.0).sum((-2, -1)) / is_number.sum((-2, -1)) / spread


def _judged(outputs: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> Judgement:
    """Values and losses of pictures, from ``[n, channels, places]`` of each output."""
    import torch

    distances = torch.stack([_distance(y, t) for y, t in zip(outputs, targets, strict=True)], 1)
    values = (1 - distances.clamp(max=1)).mean(1)
    return Judgement(values.nan_to_num(nan=0.0), bounded(distances.mean(1)))
