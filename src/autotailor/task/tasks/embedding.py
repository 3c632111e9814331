"""Embedding: a vector for each picture, whose neighbours are pictures of the same kind: faces, products, places.

Vectors are compared by their cosine. Of a picture i, let near(i) be the other picture of the set whose vector is
nearest, pictures made from the same one left out. Where pictures have classes, the score is the precision at 1,

    P@1 = mean over i of h_i,    h_i = 1 where near(i) has the class of i, else 0.

A picture without another one of its class in the set can have no such neighbour, and is left out. Without classes, the
score is the share of the ``NEAREST`` nearest pictures that are among those of the original network.

Neighbours depend on all pictures of a set. So the value of a picture, with which sensitivities, predictions and the
search compute, needs none. With the vectors t of the original network and y of another one, the sum m of the vectors
t of its class without its own, and those m_r of the ``RIVALS`` classes most like it, it is

    class precision = 1 where cos(y, m) > cos(y, m_r) for all r, else 0.

Of 40 untrained SubNets of a network for digits, Kendall's tau of its mean and P@1 was 0.84. It was 0.54 for nearness,
which is the value of pictures without classes, and gives the loss of all:

    nearness = 1 - min(1, (1 - cos(y, t)) / d),    d = mean over other pictures j of 1 - cos(t, t_j),

1 where both vectors have the same direction, and 0 where y is as far from t as other pictures are. What picture i adds
to P@1 is h_i and what it does as a neighbour of others, c_i = sum over j with near(j) = i of h_j - h_j without i,

    s_i = h_i + c_i - mean(c),

the exact effect of leaving the picture out (the jackknife, whose variance is on average no smaller than the true one;
Efron and Stein, 1981). Training needs no classes: a network learns the vectors of the original one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.labels import EMBEDDING, UNKNOWN
from autotailor.task.errors import TaskError
from autotailor.task.interface import Asked, Judgement, Lesson, Targets, Task
from autotailor.task.registry import register
from autotailor.task.rows import bounded, first, single
from autotailor.task.scores import Score

if TYPE_CHECKING:
    import torch

    from autotailor.data.splits import DataSplits
    from autotailor.ir.space.metric import FloatArray

NEAREST = 10
"""Neighbours that are compared with those of the original network."""
ROWS = 1024
"""Pictures whose cosines to all others are in memory at once."""
LEAST = 1e-12
"""A smaller length, or a smaller mean distance, counts as this."""
RIVALS = 3
"""Most other classes with which a picture's vector is compared."""
CLASS, BASE, SPREAD, LENGTH, VECTOR = range(5)
"""Where a target has its class or ``UNKNOWN``, its base picture, d, the vectors' length, and then t, m and the m_r."""
MEAN, NEARNESS = "class precision", "nearness to the original network"
HOW = (
    f"Predictions, sensitivities and the search compute with {MEAN}: how often a picture's vector is nearer to the "
    f"mean vector of its class than to those of the {RIVALS} classes most like it, as the original network has them."
)
WITHOUT = (
    f"Predictions, sensitivities and the search compute with {NEARNESS}: 1 where a picture's vector has the direction "
    "that the original network gives it, and 0 where it is as far away as other pictures are."
)


@register
class Embedding(Task):
    """Outputs are vectors ``[n, d]``; targets hold vectors of the original network too, float32 (``beside``)."""

    name = EMBEDDING
    network = "a network for embeddings"
    reading = "The output is a vector; the larger the cosine of two pictures' vectors, the more alike they are."
    target_axes = 2
    names_outputs = False
    compares = True
    logits = False
    score = Score(
        "P@1",
        "best",
        "P@1, precision at 1: how often the nearest other test picture, by the cosine of their vectors, is of the same "
        f"class. {HOW}",
        mean_name=MEAN,
    )
    agreement = Score(
        "shared neighbours",
        "most faithful",
        f"The pictures have no classes. Shared neighbours: how many of the {NEAREST} test pictures that are nearest to "
        f"a picture, by the cosine of their vectors, are so with the original network, too. {WITHOUT}",
        compares=True,
        mean_name=NEARNESS,
    )

    def beside(self, labels: Targets, groups: npt.NDArray[np.int64], answers: Targets) -> Targets:
        """See Task: class, base picture, d and t of each picture, and with classes m and the m_r."""
        unit = _unit(np.asarray(answers, dtype=np.float64))
        alike = (unit @ unit.sum(axis=0) - 1) / max(len(unit) - 1, 1)
        spreads = np.maximum(1 - alike, LEAST)
        bases = np.unique(groups, return_inverse=True)[1]
        means = [] if (labels == UNKNOWN).all() else _means(unit, labels)
        return np.column_stack([labels, bases, spreads, np.full(len(unit), unit.shape[1]), unit, *means]).astype(
            np.float32
        )

    def judge(self, outputs: Any, targets: torch.Tensor) -> Judgement:
        """See Task: class precision or nearness, and 1 - cos over d; counts are class, base picture and vector.

        Without classes, the vector of the original network stands behind that of the network.
        """
        import torch

        unit = _direction(_rows(outputs))
        if targets.ndim != self.target_axes or int(targets[0, LENGTH]) != unit.shape[1]:
            raise TaskError(
                f"data.task is embedding: targets have shape {list(targets.shape)}; take targets with this network's "
                f"vectors (accuracy.with_labels)"
            )
        places = targets[:, VECTOR:].double().reshape(len(unit), -1, unit.shape[1])
        alike = (unit[:, None] * places).sum(2)
        away = (1 - alike[:, 0]).clamp(min=0) / targets[:, SPREAD].double()
        kept = [targets[:, :SPREAD].double(), unit.nan_to_num(nan=0.0)]
        kept += [places[:, 0]] if bool((targets[:, CLASS] == UNKNOWN).all()) else []
        has_rivals = alike.shape[1] > 2
        values = (alike[:, 1] > alike[:, 2:].amax(1)).double() if has_rivals else 1 - away.clamp(max=1)
        values = values.nan_to_num(nan=0.0)
        return Judgement(values, bounded(away.float()), torch.cat(kept, 1).float())

    def answers(self, outputs: Any) -> torch.Tensor:
        """See Task: the vectors themselves ``[n, d]``."""
        return _rows(outputs).float()

    def agree(self, outputs: Any, others: Any) -> torch.Tensor:
        """See Task: the cosine of both vectors, and 0 where the cosine is negative."""
        return (_direction(_rows(outputs)) * _direction(_rows(others))).sum(1).clamp(0, 1)

    def loss(self, outputs: Any, targets: torch.Tensor, teacher: Any, lesson: Lesson) -> torch.Tensor:
        """See Task: the squared distance of the vectors from the teacher's, over the square of these; no classes.

        The loss keeps the vectors' lengths as well, so that vectors of the original network may stay in an index.
        """
        if teacher is None:
            raise TaskError(
                "data.task is embedding, and training without a teacher needs a loss that knows what vectors should be "
                "near; give the trained network (model.weights, or an .onnx file as model.source), which then teaches, "
                "or name your own loss in finetune.loss"
            )
        y, t = _rows(outputs), _rows(teacher)
        return (y - t).square().sum() / t.square().sum().clamp(min=LEAST)

    def chance(self, targets: Targets) -> float:
        """See Task: a network that returns the mean direction for every picture."""
        import torch

        rows = torch.from_numpy(np.asarray(targets))
        mean = rows[:, VECTOR : VECTOR + int(rows[0, LENGTH])].double().mean(0)
        return float(self.judge(mean.expand(len(rows), -1), rows).values.mean())

    def examples(self, count: int, classes: int) -> tuple[torch.Tensor, str]:
        """See Task."""
        import torch

        return torch.arange(count) % max(classes, 1), "int64 [b], the class of each picture"

    def misfit(self, outputs: Any, classes: int, images: str) -> str:
        """See Task: no row of at least two numbers."""
        tensor = single(outputs)
        if tensor is not None and tensor.ndim > 1 and tensor.numel() // 2 == max(tensor.shape[1:]) > 1:
            return ""
        shape = f"{len(outputs)} tensors" if tensor is None else str(list(tensor.shape))
        return f"gives {shape} for 2 images, expected vectors [2, d]; name the output that has them (model.output)"

    def doubt(self, evaluated: Asked, data: DataSplits, resolution: int, name: str) -> str:
        """See Task: whether near pictures are of one class more often than any two, by two standard errors."""
        targets = np.asarray(data.validation.labels)
        kept = np.column_stack([targets[:, :SPREAD], _unit(np.asarray(evaluated.answers, dtype=np.float64))])
        counts = np.unique(targets[:, CLASS], return_counts=True)[1]
        pairs = (counts * (counts - 1)).sum() / max(counts[counts > 1].sum() * (len(targets) - 1), 1)
        guess = "a neighbour that is drawn by lot"
        check = "its output is the vector (model.output), and that it was trained on"
        with_shares = replace(evaluated, values=self.shares(kept))
        return self.no_better(with_shares, data, resolution, f"{name} has P@1", guess, check, float(pairs))

    def shares(self, kept: npt.NDArray[Any]) -> FloatArray:
        """See Task: what pictures add to P@1, or the shared neighbours of each, from counts (``judge``)."""
        rows = np.asarray(kept, dtype=np.float32)
        labels, bases, vectors = rows[:, CLASS], rows[:, BASE], rows[:, SPREAD:]
        if (labels == UNKNOWN).all():
            sides = np.split(vectors, 2, axis=1)
            one, other = (_neighbours(side, bases, NEAREST) for side in sides)
            both = (one[:, :, None] == other[:, None, :]) & (one >= 0)[:, :, None]
            return np.asarray(both.any(2).sum(1) / np.maximum((other >= 0).sum(1), 1), dtype=np.float64)
        near = _neighbours(vectors, bases, 2)
        hits = (labels[near] == labels[:, None]) & (near >= 0)
        can = np.array([((labels == label) & (bases != base)).any() for label, base in zip(labels, bases, strict=True)])
        if not can.any():
            return np.zeros(len(rows))
        first = np.where(can, hits[:, 0], hits[can, 0].mean()).astype(np.float64)
        lost = np.where(can, hits[:, 0].astype(np.float64) - hits[:, 1], 0.0)
        credit = np.bincount(near[:, 0], weights=lost, minlength=len(rows))
        return np.asarray(first + credit - credit.mean())


def _means(unit: FloatArray, labels: Targets) -> list[FloatArray]:
    """The direction of each picture's class without the picture, and those of the classes most like it, ``[n, d]``."""
    classes, places = np.unique(labels, return_inverse=True)
    sums = np.zeros((len(classes), unit.shape[1]))
    np.add.at(sums, places, unit)
    is_alone = np.bincount(places)[places] < 2
    own = _unit(np.where(is_alone[:, None], unit, sums[places] - unit))
    means = _unit(sums)
    alike = means @ means.T - 3 * np.eye(len(means))
    rivals = np.argsort(-alike, axis=1, kind="stable")[:, : min(RIVALS, len(means) - 1)]
    return [own, *(means[rivals[places, number]] for number in range(rivals.shape[1]))]


def _rows(outputs: Any) -> torch.Tensor:
    """The vectors ``[n, d]``."""
    return first(outputs).flatten(1)


def _direction(vectors: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1, float64."""
    numbers: torch.Tensor = vectors.double()
    unit: torch.Tensor = numbers / numbers.norm(dim=1, keepdim=True).clamp(min=LEAST)
    return unit


def _unit(vectors: FloatArray) -> FloatArray:
    """Vectors of length 1, of an array."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), LEAST))


def _neighbours(vectors: npt.NDArray[np.float32], bases: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """The nearest pictures of each, nearest first, ``[n, count]``; -1 where there are no more of another base picture.

    Of equally near ones, the first counts: a network that gives all pictures one vector knows no neighbours.
    """
    nearest = []
    for start in range(0, len(vectors), ROWS):
        alike = vectors[start : start + ROWS] @ vectors.T
        alike[bases[start : start + ROWS, None] == bases] = -np.inf
        order = np.argsort(-alike, axis=1, kind="stable")[:, :count]
        nearest.append(np.where(np.isfinite(np.take_along_axis(alike, order, 1)), order, -1))
    padded = np.concatenate(nearest)
    return np.pad(padded, ((0, 0), (0, count - padded.shape[1])), constant_values=-1)
