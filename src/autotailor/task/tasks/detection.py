"""Detection: boxes with classes, which a function of the user's makes of the network's outputs (``data.decode``).

The score is COCO's mAP (``task.average_precision``), over the boxes of a set of pictures together. It is no mean over
pictures. So the value of a picture, with which sensitivities, predictions and the search compute, is its own AP: all
its detections in one order, whatever their classes, as the mean over the same ten IoU thresholds. What a picture adds
to mAP is the mAP of all plus its first-order influence. Training needs no boxes: a network learns the outputs of the
original one, as in the task ``outputs``, and boxes judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.labels import BOX, UNKNOWN
from autotailor.project.factory import FAILURES, find_factory, raised
from autotailor.task import average_precision
from autotailor.task.errors import TaskError
from autotailor.task.interface import Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import find, register
from autotailor.task.scores import Score

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits
    from autotailor.ir.space.metric import FloatArray

MOST = 100
"""Detections of a picture that are judged, those of the highest scores; COCO's number."""
SURE = 0.3
"""The score from which on a detection of the original network stands for a box, where pictures have none."""
BRIGHTNESS, DARK = (0.3, 0.6, 0.1), 140
"""What red, green and blue add to brightness, and the brightness up to which white letters are read."""
KEYS = ("boxes", "scores", "labels")
MEAN = "picture AP"
HOW = (
    f"Predictions, sensitivities and the search compute with {MEAN}, the mean over pictures of the average precision "
    "of each picture for itself."
)


@register
class Detection(Task):
    """Outputs are whatever ``data.decode`` takes; read, they are detections ``[n, MOST, 6]``.

    A detection has its edges as shares of the picture's sides, its score and its class; the best come first, and absent
    ones have the class -1. Targets are boxes, float32 ``[n, boxes, 6]`` (``labels.BOX``).
    """

    name = "detection"
    network = "a network that finds objects"
    reading = "The function `data.decode` of the run's configuration makes boxes, scores and classes of the outputs."
    target_axes = 3
    has_boxes = True
    at_side = True
    score = Score(
        "mAP",
        "best",
        "mAP: COCO's mean average precision of boxes, over classes and the IoU thresholds 0.50 to 0.95, of all "
        f"pictures together. {HOW}",
        mean_name=MEAN,
    )
    agreement = Score(
        "mAP with the original network",
        "most faithful",
        f"The pictures have no boxes: those that the original network finds with a score of {SURE} or more stand for "
        f"them. mAP: COCO's mean average precision, over classes and the IoU thresholds 0.50 to 0.95. {HOW}",
        compares=True,
        mean_name=f"{MEAN} with the original network",
    )

    @property
    def _where(self) -> str:
        return f"data.decode {self.told}"

    @cached_property
    def _decode(self) -> Callable[[Any, int], Any]:
        if not self.told:
            raise TaskError(
                "data.task is detection, and data.decode names no function; name one that makes boxes of the network's "
                "outputs, of your own (module:function) or of autotailor.task.decoders (docs/guides/detection.md)"
            )
        return find_factory(self.told, self._where, TaskError)

    def check(self) -> None:
        """See Task: no function is named, or it cannot be imported."""
        self._decode  # noqa: B018  # is imported here

    def read(self, outputs: Any, side: int) -> torch.Tensor:
        """See Task.

        Raises:
            TaskError: the user's function fails, or does not return boxes, scores and labels of each picture.
        """
        import torch

        decode, count = self._decode, len(outputs[0] if isinstance(outputs, tuple) else outputs)
        try:
            decoded = list(decode(outputs, side))
            pictures = [[torch.as_tensor(each[key]).detach() for key in KEYS] for each in decoded]
        except FAILURES as error:
            raise TaskError(
                f"{self._where} failed on outputs for {count} images: {raised(error)}; {_EXPECTED}"
            ) from error
        for boxes, scores, labels in pictures:
            shapes = [list(boxes.shape), list(scores.shape), list(labels.shape)]
            if shapes != [[len(scores), 4], [len(scores)], [len(scores)]] or ((scores < 0) | (scores > 1)).any():
                raise TaskError(f"{self._where} returned shapes {shapes} and {_range(scores)}; {_EXPECTED}")
        if len(pictures) != count:
            raise TaskError(f"{self._where} returned {len(pictures)} pictures for {count} images; {_EXPECTED}")
        return torch.stack([_rows(boxes, scores, labels, side) for boxes, scores, labels in pictures])

    def judge(self, outputs: Any, targets: torch.Tensor) -> Judgement:
        """See Task: picture AP, and 1 less it as the loss; counts are ``average_precision.rows``."""
        detections, boxes = outputs.double(), targets.double()
        right, ignored = average_precision.matched(detections, boxes)
        kept = average_precision.rows(detections, boxes, right, ignored)
        counts = ((boxes[..., 4] >= 0) & (boxes[..., 5] == 0)).sum(1)
        values = average_precision.of_pictures(right, ignored | (detections[..., 5:] < 0), counts)
        return Judgement(values, (1 - values).float(), kept)

    def answers(self, outputs: Any) -> torch.Tensor:
        """See Task: the detections that are sure."""
        import torch

        is_sure = (outputs[..., 4] >= SURE) & (outputs[..., 5] >= 0)
        label = outputs[..., 5].where(is_sure, float(UNKNOWN))
        return torch.cat([outputs[..., :4], torch.stack([label, torch.zeros_like(label)], 2)], 2)

    def agree(self, outputs: Any, others: Any) -> torch.Tensor:
        """See Task: picture AP where the others' sure detections are the boxes."""
        return self.judge(outputs, self.answers(others)).values

    def loss(self, outputs: Any, targets: torch.Tensor, teacher: Any, lesson: Lesson) -> torch.Tensor:
        """See Task: the distance from the teacher's outputs (``task.tasks.outputs``), whatever the boxes."""
        if teacher is None:
            raise TaskError(
                "data.task is detection, and training without a teacher needs a loss that knows the network's heads; "
                "give the trained network (model.weights, or an .onnx file as model.source), which then teaches, or "
                "name your own loss in finetune.loss"
            )
        return find("outputs").loss(outputs, targets, teacher, lesson)

    def chance(self, targets: Targets) -> float:
        """See Task: a network that finds nothing is right where there is nothing."""
        return float(1 - ((targets[..., 4] >= 0) & (targets[..., 5] == 0)).any(axis=1).mean())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task."""
        import torch

        boxes = torch.tensor([[[0.25, 0.25, 0.75, 0.75, 0.0, 0.0]]]).repeat(count, 1, 1)
        return boxes, f"float32 [b, boxes, 6] ({', '.join(BOX)}; edges are shares of the picture's sides)"

    def misfit(self, outputs: Any, classes: int, images: str) -> str:
        """See Task: a class that the data do not have."""
        most = int(outputs[..., 5].max())
        if not classes or most < classes:
            return ""
        return (
            f"finds class {most} by {self._where}, and {images} has {classes} classes, 0 to {classes - 1}; let the "
            f"function give the numbers of the data's classes, which are the categories in the order of their ids"
        )

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task: whether the network is better than one that finds nothing, by more than two standard errors."""
        check = (
            f"{self._where} gives pixels of the network's image and classes in the data's order "
            f"({', '.join(data.classes[:4])} ...), and that the network was trained on"
        )
        return self.no_better(evaluated, data, resolution, f"{name} has {MEAN}", "a network that finds nothing", check)

    def painted(self, picture: Any, target: torch.Tensor, colours: Mapping[str, tuple[int, ...]]) -> Any:
        """See Task: boxes with the names of their classes; crowds are left out."""
        from PIL import ImageDraw

        canvas, shades = picture.copy(), list(colours.items())
        pen = ImageDraw.Draw(canvas)
        for *edges, label, crowd in target.tolist():
            if 0 <= label < len(shades) and not crowd:
                name, colour = shades[int(label)]
                left, top, right, bottom = (edge * side for edge, side in zip(edges, canvas.size * 2, strict=True))
                pen.rectangle((left, top, right, bottom), outline=colour, width=2)
                place = (left + 3, max(top - 11, 0))
                pen.rectangle(pen.textbbox(place, name), fill=colour)
                pen.text(place, name, fill="black" if np.dot(colour, BRIGHTNESS) > DARK else "white")
        return canvas

    def shares(self, kept: npt.NDArray[Any]) -> FloatArray:
        """See Task: mAP and the influences of pictures on it."""
        value, influences = average_precision.of_set(kept)
        return np.asarray(value + influences)


_EXPECTED = (
    f"expected for each picture a mapping with {', '.join(KEYS)}: [m, 4] edges in pixels, [m] from 0 to 1, and [m] "
    "numbers of classes"
)


def _range(scores: torch.Tensor) -> str:
    return f"scores from {scores.min():g} to {scores.max():g}" if scores.numel() else "no scores"


def _rows(boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor, side: int) -> torch.Tensor:
    """The detections of one picture ``[MOST, 6]``; boxes that are no numbers or have no area are absent."""
    import torch
    from torch.nn import functional

    rows = torch.cat([boxes.float() / side, scores.float()[:, None], labels.float()[:, None]], 1)
    rows = rows[rows.isfinite().all(1) & (rows[:, 2:4] > rows[:, :2]).all(1)]
    rows = rows[rows[:, 4].argsort(descending=True, stable=True)[:MOST]]
    return functional.pad(rows, (0, 0, 0, MOST - len(rows)), value=float(UNKNOWN))
