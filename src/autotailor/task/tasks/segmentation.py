"""Segmentation: the class of each pixel, in a map; pixels with the class ``IGNORED`` do not count.

Maps ``[n, classes, h, w]`` of any stride are scaled to the targets' size, bilinear, before the largest channel is
taken. Of a picture i and a class c, I_ic is the number of pixels of the class that are found, and U_ic the number of
those that are of the class, or are said to be. The score is computed from their sums over the pictures of a set,

    mIoU = mean over c of I_c / U_c,    over the classes with U_c > 0.

It is no mean over pictures, and one picture alone has no mIoU. So the value of a picture, with which sensitivities,
predictions and the search compute, is its own mean of I_ic / U_ic over the classes that it shows, the picture IoU. What
a picture adds to mIoU is the mIoU of all plus its first-order influence (the infinitesimal jackknife; Efron, 1982),

    s_i = mIoU + n / C sum over c of (I_ic - IoU_c U_ic) / U_c,

with n pictures and C classes. The mean of s_i is mIoU, and their scatter is what drawing the pictures anew would give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.labels import IGNORED
from autotailor.task.interface import MAP, Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import register
from autotailor.task.rows import SHARES, bounded, first
from autotailor.task.scores import Score

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits
    from autotailor.ir.space.metric import FloatArray

MOST = 1 << 24
"""Numbers of maps that are scaled up at once."""
LEAST = 1e-30
"""A smaller probability counts as this, so that its logarithm is finite."""
MEAN = "picture IoU"
HOW = (
    f"Predictions, sensitivities and the search compute with {MEAN}, the mean over pictures of the same quotient for "
    "the classes that a picture shows."
)


@register
class Segmentation(Task):
    """Outputs are a map of logits ``[n, classes, h, w]``, or what Softmax makes of them; of a tuple the first counts.

    Targets are the class of each pixel ``[n, H, W]``, or ``IGNORED``.
    """

    name = "segmentation"
    network = "a network that gives each pixel a class"
    reading = (
        "The channels of the first output belong to the classes in their order. Scaled to the picture (bilinear), its "
        "largest channel is the class of a pixel."
    )
    target_axes = 3
    score = Score(
        "mIoU",
        "best",
        "mIoU: of each class the pixels that are found, over those that are of the class or are said to be, of all "
        f"pictures together; the mean over the classes. {HOW}",
        mean_name=MEAN,
    )
    agreement = Score(
        "mIoU with the original network",
        "most faithful",
        "The pictures have no masks: those of the original network stand for them. mIoU: of each class the pixels that "
        f"both give it, over those that one of them does, of all pictures together; the mean over the classes. {HOW}",
        compares=True,
        mean_name=f"{MEAN} with the original network",
    )

    def judge(self, outputs: Any, targets: torch.Tensor) -> Judgement:
        """See Task: picture IoU, and the mean cross entropy of its pixels in nats; counts I and U ``[n, 2, classes]``.

        A picture without a pixel that counts says nothing: its value is 1, and its loss 0.
        """
        import torch

        maps, classes = _map(outputs), targets.long()
        rows = max(1, MOST // (maps.shape[1] * classes[0].numel()))
        parts = zip(torch.split(maps, rows), torch.split(classes, rows), strict=True)
        counts, values, losses = zip(*(_judged(*part) for part in parts), strict=True)
        return Judgement(torch.cat(values), bounded(torch.cat(losses)), torch.cat(counts))

    def answers(self, outputs: Any) -> torch.Tensor:
        """See Task: the largest channel at each place of the map, whose size the answers keep."""
        return _map(outputs).argmax(1).byte()

    def agree(self, outputs: Any, others: Any) -> torch.Tensor:
        """See Task: the share of the places of the map with the same largest channel."""
        own, theirs = _map(outputs), _map(others)
        return (_sized(own, theirs.shape[2:]).argmax(1) == theirs.argmax(1)).flatten(1).double().mean(1)

    def loss(self, outputs: Any, targets: torch.Tensor, teacher: Any, lesson: Lesson) -> torch.Tensor:
        """See Task: cross entropy at the pixels that count, and distillation at the places of the teacher's map."""
        import torch
        from torch.nn import functional

        from autotailor.task.distillation import distillation_loss, pixels

        maps, parts = _map(outputs), []
        weight = 0.0 if teacher is None else lesson.weight
        if weight < 1:
            classes = targets.long()
            rows, labels = pixels(_sized(maps, classes.shape[1:])), classes.flatten()
            hard = functional.cross_entropy(
                rows, labels, ignore_index=IGNORED, reduction="sum", label_smoothing=lesson.smoothing
            )
            parts.append((1 - weight) * hard / (labels != IGNORED).sum().clamp(min=1))
        if weight > 0:
            teacher_maps, alone = _map(teacher), replace(lesson, weight=1.0, independent=False)
            rows = pixels(_sized(maps, teacher_maps.shape[2:]))
            parts.append(weight * distillation_loss(rows, targets, pixels(teacher_maps), alone))
        return torch.stack(parts).sum()

    def chance(self, targets: Targets) -> float:
        """See Task: a network that gives each pixel the commonest class."""
        counts = np.array([np.bincount(each[each != IGNORED], minlength=IGNORED) for each in targets])
        shown, sizes = (counts > 0).sum(axis=1), np.maximum(counts.sum(axis=1), 1)
        values = counts[:, counts.sum(axis=0).argmax()] / sizes / np.maximum(shown, 1)
        return float(np.where(shown > 0, values, 1.0).mean())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task."""
        import torch

        return torch.arange(count * 9).reshape(count, 3, 3) % classes, f"int64 [b, R, R] ({IGNORED} does not count)"

    def misfit(self, outputs: Any, classes: int, images: str) -> str:
        """See Task; without labels the number of classes is not known."""
        tensor = first(outputs)
        shape = list(tensor.shape)
        if tensor.ndim == MAP and (tensor.shape[1] == classes or (not classes and tensor.shape[1] > 1)):
            return ""
        return (
            f"gives {shape} for 2 images, expected a map [2, {classes or 'classes'}, height, width], the first output "
            f"where there are several; name the output that is the map (model.output), and take masks of the network's "
            f"classes: {images} has {classes or 'no'} classes"
        )

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task: whether the network is better than chance, by more than two standard errors."""
        guess = "a network that says the commonest class everywhere"
        check = "it was trained on these classes, in this order (data.classes), and on"
        return self.no_better(evaluated, data, resolution, f"{name} has {MEAN}", guess, check)

    def painted(self, picture: Any, target: torch.Tensor, colours: Mapping[str, tuple[int, ...]]) -> Any:
        """See Task: each class in its colour; what does not count stays as it is."""
        from PIL import Image

        palette = np.full((IGNORED + 1, 3), -1, dtype=np.int64)
        palette[: len(colours)] = list(colours.values())
        classes = Image.fromarray(target.cpu().numpy().astype(np.uint8)).resize(picture.size, Image.Resampling.NEAREST)
        tint, pixels = palette[np.asarray(classes)], np.asarray(picture)
        return Image.fromarray(np.where(tint < 0, pixels, (pixels + tint) // 2).astype(np.uint8))

    def shares(self, kept: npt.NDArray[Any]) -> FloatArray:
        """See Task: the influence of pictures on mIoU, from counts ``[n, 2, classes]``."""
        intersections, unions = np.asarray(kept, dtype=np.float64).swapaxes(0, 1)
        total = unions.sum(axis=0)
        there = total > 0
        if not there.any():
            return np.ones(len(intersections))
        quotients = intersections.sum(axis=0)[there] / total[there]
        moved = (intersections[:, there] - quotients * unions[:, there]) / total[there]
        return np.asarray(quotients.mean() + len(intersections) * moved.mean(axis=1))


def _map(outputs: Any) -> torch.Tensor:
    """The map of logits ``[n, classes, h, w]``, float32.

    The logarithm of what Softmax returns is its logits up to a number that is the same for all classes of a place. Such
    a number changes neither an answer nor a loss, also between places. To scale probabilities would change answers.
    """
    maps = first(outputs).float()
    if not ((maps >= 0).all() and (maps.sum(1) - 1).abs().max() < SHARES):
        return maps
    return maps.clamp(min=LEAST).log()


def _sized(maps: torch.Tensor, size: Any) -> torch.Tensor:
    """Maps scaled to a height and a width, bilinear."""
    from torch.nn import functional

    return maps if maps.shape[2:] == size else functional.interpolate(maps, list(size), mode="bilinear")


def _judged(maps: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Counts ``[n, 2, classes]``, values and losses of some pictures."""
    import torch
    from torch.nn import functional

    from autotailor.task.distillation import pixels

    maps = _sized(maps, targets.shape[1:])
    count, classes = maps.shape[:2]
    valid = targets != IGNORED
    losses = functional.cross_entropy(pixels(maps), targets.flatten(), ignore_index=IGNORED, reduction="none")
    losses = losses.reshape(count, -1).sum(1) / valid.flatten(1).sum(1).clamp(min=1)

    pictures = torch.arange(count, device=maps.device)[:, None, None] * classes
    predicted = maps.argmax(1).masked_fill(maps.isnan().any(1), classes)  # NaN is no answer

    def counted(where: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        return torch.bincount((pictures + which)[where], minlength=count * classes).reshape(count, classes)

    both = counted(valid & (predicted == targets), targets)
    shown = counted(valid, targets)
    either = shown + counted(valid & (predicted < classes), predicted) - both
    value = (both / either.clamp(min=1)).sum(1)  # of classes that the picture does not show nothing is found
    here = (shown > 0).sum(1)
    values = torch.where(here > 0, value / here.clamp(min=1), 1.0)
    return torch.stack([both, either], 1), values, losses
