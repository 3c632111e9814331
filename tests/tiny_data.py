"""A tiny dataset in memory for the tests of training and sensitivity: five classes of bright squares in noise."""

from collections.abc import Iterator

import numpy as np
import torch

from autotailor.data.splits import Batch, DataSplits, TensorEvaluationSet, TrainStream, check_batches

CLASSES = 5


def draw(count: int, *words: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(int(np.random.SeedSequence(words).generate_state(1)[0]))
    labels = torch.arange(count) % CLASSES
    images = torch.randn(count, 3, 32, 32, generator=random) * 0.3
    for image, label in zip(images, labels.tolist(), strict=True):
        image[:, 6 * label : 6 * label + 8, 4:20] += 2.0
    return images, labels


class TinyStream(TrainStream):
    """Training batches; the batch ``fail_at``, given as (epoch, batch), raises KeyboardInterrupt instead."""

    def __init__(self, images: int = 48, fail_at: tuple[int, int] | None = None) -> None:
        self.images, self.fail_at = images, fail_at

    def __len__(self) -> int:
        return self.images

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        check_batches(batch_size, epoch, start)
        size = min(batch_size, len(self))
        images, labels = draw(self.images, 0, epoch)
        for number in range(start, self.num_batches(batch_size)):
            if (epoch, number) == self.fail_at:
                raise KeyboardInterrupt
            part = slice(number * size, (number + 1) * size)
            yield images[part], labels[part]


def splits(fail_at: tuple[int, int] | None = None) -> DataSplits:
    held = []
    for seed in (1, 2):
        images, labels = draw(40, seed)
        held.append(TensorEvaluationSet(images, labels, np.arange(40) // 2))
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    return DataSplits("tiny", CLASSES, 32, TinyStream(fail_at=fail_at), held[0], held[1], mean, std, "tiny")
