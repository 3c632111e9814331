"""The training stream of shards: read from front to back by the library webdataset, shuffled by shard and by buffer.

Seed and epoch give the order of the shards and what the buffer hands out, so that the order of an epoch is always the
same. A training that goes on inside an epoch reads on from the epoch's first shard without decoding what it skips.
Threads decode, crop and flip; the order does not depend on their number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import default_collate

from autotailor.data.augmentation.policy import Policy
from autotailor.data.errors import DataError
from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.listing import is_picture
from autotailor.data.pictures.reading import PictureError, read_picture
from autotailor.data.pictures.stream import training_image
from autotailor.data.splits import WHOLE, Batch, Shard, TrainStream, check_batches
from autotailor.data.workers import prepared

SHARDS, BUFFER = 10, 11  # seed words that keep the random streams apart


class ShardStream(TrainStream):
    """Training pictures of shards.

    Args:
        config: of the pictures.
        shards: paths of the tar files.
        length: number of samples in all shards.
        label: suffix of the files with labels; "" does without labels.
        buffer: number of samples from which the next one is drawn.
        policy: changes images one by one.
    """

    def __init__(
        self,
        config: PictureConfig,
        shards: Sequence[Path],
        length: int,
        label: str,
        buffer: int,
        policy: Policy | None = None,
    ) -> None:
        self.config, self._shards, self._length = config, list(shards), length
        self._label, self._buffer, self._policy = label, buffer, policy

    def __len__(self) -> int:
        """Images per epoch."""
        return self._length

    def augmented(self, policy: Policy) -> ShardStream:
        """The same samples in the same order, changed by a policy where they are opened."""
        return ShardStream(self.config, self._shards, self._length, self._label, self._buffer, policy)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        return self.shards(epoch, batch_size, start)

    def shards(self, epoch: int, batch_size: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Batch]:
        """See TrainStream; all samples are read, and those of the part are decoded."""
        check_batches(batch_size, epoch, start)
        size = min(batch_size, len(self))
        positions = range(start * size, self.num_batches(batch_size) * size)
        samples = zip(positions, islice(self._samples(epoch), positions.start, positions.stop), strict=True)

        def groups() -> Iterator[list[tuple[int, Any]]]:
            while group := list(islice(samples, size)):
                yield group

        def prepare(group: list[tuple[int, Any]]) -> Batch:
            batch: Batch = default_collate([self._item(epoch, *each) for each in shard.of(group)])
            return batch[0], batch[1]

        yield from prepared(groups(), prepare, self.config.workers)

    def _samples(self, epoch: int) -> Iterator[dict[str, Any]]:
        """The samples of an epoch in their order, not decoded."""
        import webdataset

        order = np.random.default_rng([self.config.seed, SHARDS, epoch]).permutation(len(self._shards))
        state = np.random.SeedSequence([self.config.seed, BUFFER, epoch]).generate_state(2, np.uint64)
        return iter(
            webdataset.DataPipeline(
                webdataset.SimpleShardList([str(self._shards[number]) for number in order]),
                webdataset.tarfile_to_samples(),
                webdataset.shuffle(self._buffer, initial=self._buffer, rng=random.Random(state.tobytes())),
            )
        )

    def _item(self, epoch: int, position: int, sample: dict[str, Any]) -> tuple[Any, int]:
        """A training image ``[3, R, R]`` and its label."""
        content = next(sample[suffix] for suffix in sample if is_picture(f".{suffix}") and not suffix.startswith("__"))
        try:
            picture = read_picture(content, self.config.background)
        except PictureError as error:
            raise DataError(f"{sample['__url__']}: sample {sample['__key__']} {error}") from error
        label = int(sample[self._label]) if self._label else UNKNOWN
        return training_image(self.config, picture, epoch, position, self._policy), label
