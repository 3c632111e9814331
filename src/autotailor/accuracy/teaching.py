"""Labels for pictures without labels: the answers of the original network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import predictions
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.compute.accelerator import resolve
from autotailor.data.labels import scaled
from autotailor.data.splits import Batch, DataSplits, EvaluationSet
from autotailor.ir.supernet import SuperNet, load_supernet
from autotailor.task.interface import Targets
from autotailor.task.registry import of


class AnsweredSet(EvaluationSet):
    """An evaluation set whose targets are the answers of a network.

    Args:
        images: the evaluation set without labels.
        answers: to each image (``Task.answers``).
        task: of the answers, with what it is told; "" is that of the images.
    """

    def __init__(self, images: EvaluationSet, answers: Targets, task: str = "") -> None:
        self._images = images
        self.labels, self.groups, self.task = answers, images.groups, task or images.task

    def part(self, positions: npt.NDArray[np.int64]) -> EvaluationSet:
        """See EvaluationSet."""
        return AnsweredSet(self._images.part(positions), self.labels[positions], self.task)

    def over(self, background: str) -> EvaluationSet | None:
        """See EvaluationSet; the answers stay those over the background of before."""
        images = self._images.over(background)
        return None if images is None else AnsweredSet(images, self.labels, self.task)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """See EvaluationSet."""
        first, labels = 0, torch.from_numpy(self.labels)
        for images, _ in self._images.batches(batch_size):
            yield images, labels[first : first + len(images)]
            first += len(images)


def with_labels(data: DataSplits, original: str | Path | SuperNet, accelerator: str = "cpu") -> DataSplits:
    """Data whose validation and test images have labels; data with labels of their own are returned as they are.

    Where a task compares with the original network in spite of labels, answers stand beside these (``Task.beside``).

    Training images stay without labels, because the original network teaches them alone.

    Args:
        data: the splits.
        original: the SuperNet as compiled, or its file; its largest SubNet is the original network. Where the data have
            labels, the file is not read.
        accelerator: that computes the answers (``autotailor.compute.accelerator``).
    """
    judge = of(data)
    if data.labelled and not judge.compares:
        return data
    net = original if isinstance(original, SuperNet) else load_supernet(original)
    device = resolve(accelerator)
    network = net.build(net.largest(), logits=judge.logits).eval().to(device)
    with deterministic(torch.get_num_threads(), device):
        sets, side = (data.validation, data.test), resolution_of(net.largest())
        answers = [predictions(network, images, side) for images in sets]
    task = scaled(data.validation.task, answers[0])
    validation, test = (
        AnsweredSet(images, judge.beside(images.labels, images.groups, each), task)
        for images, each in zip(sets, answers, strict=True)
    )
    identity = fingerprint([data.fingerprint, *(images.labels.tobytes().hex() for images in (validation, test))])
    classes = data.num_classes if data.labelled else net.num_classes
    return replace(data, num_classes=classes, validation=validation, test=test, fingerprint=identity)
