"""Training images of later epochs: those of other trainings than that of the SuperNet in ``finetune``."""

from collections.abc import Iterator
from itertools import islice

from autotailor.data.splits import WHOLE, Batch, Shard, TrainStream

FIRST_EPOCH = 10_000
"""Number of the first epoch that ``polish``, ``train_pool``, ``distil`` and heads of early exits read.

``finetune`` does not read so many, so that its images are others. These trainings may read the same epochs.
"""


class LaterEpochs(TrainStream):
    """A training stream whose epoch 0 is a later one.

    Args:
        stream: the training images.
        first: number of the epoch in ``stream`` that is epoch 0 here.
        images: of each epoch at most, in the order of the epoch; 0: all.
    """

    def __init__(self, stream: TrainStream, first: int, images: int = 0) -> None:
        self._stream, self._first = stream, first
        self._images = min(images or len(stream), len(stream))

    def __len__(self) -> int:
        return self._images

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        batches = self._stream.batches(self._first + epoch, batch_size, start)
        return islice(batches, self.num_batches(batch_size) - start)

    def shards(self, epoch: int, batch_size: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Batch]:
        """See TrainStream."""
        batches = self._stream.shards(self._first + epoch, batch_size, start, shard)
        return islice(batches, self.num_batches(batch_size) - start)
