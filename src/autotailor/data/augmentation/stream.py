"""Training streams whose images are augmented one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch

from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.policy import Policy
from autotailor.data.splits import WHOLE, Batch, DataSplits, Shard, TrainStream


@runtime_checkable
class Augmentable(Protocol):
    """A training stream that applies a policy itself, where its pictures are opened."""

    def augmented(self, policy: Policy) -> TrainStream:
        """The same training images, changed by a policy."""
        ...


def augmented(data: DataSplits, config: AugmentationConfig, seed: int) -> TrainStream:
    """The training images of data, changed as a training's configuration says; the order and the crops stay the same.

    Args:
        data: the splits.
        config: of the augmentation; mixtures of images are not made here (``mixing``).
        seed: of the training.
    """
    if not config.changes_images:
        return data.train
    if data.has_maps:
        config.check_maps()
    if data.signal:
        channels, height, _ = data.signal.shape
        config.check_signals(height, are_pictures=channels == 3 and data.signal.scale != 1)
    policy = Policy(config, seed, data.mean)
    return data.train.augmented(policy) if isinstance(data.train, Augmentable) else _AugmentedStream(data, policy)


class _AugmentedStream(TrainStream):
    """Changes the normalised images of any stream, in the thread that reads them."""

    def __init__(self, data: DataSplits, policy: Policy) -> None:
        self._stream, self._policy = data.train, policy
        self._mean, self._std = (torch.tensor(values).view(-1, 1, 1) for values in (data.mean, data.std))

    def __len__(self) -> int:
        return len(self._stream)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        return self.shards(epoch, batch_size, start)

    def shards(self, epoch: int, batch_size: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Batch]:
        """See TrainStream; the images of the part alone are changed."""
        size = min(batch_size, len(self))
        for number, (images, labels) in enumerate(self._stream.shards(epoch, batch_size, start, shard), start):
            first = number * size + shard.number * len(images)
            changed = [self._changed(image, epoch, first + index) for index, image in enumerate(images)]
            yield torch.stack(changed), labels

    def _changed(self, image: torch.Tensor, epoch: int, position: int) -> torch.Tensor:
        if not self._policy.distorts:
            return self._policy(image, torch.clone, epoch, position)
        return self._policy(self._picture(image), partial(_normalised, self._mean, self._std), epoch, position)

    def _picture(self, image: torch.Tensor) -> Any:
        """A normalised image as a PIL image with 8 bits."""
        from torchvision.transforms.v2 import functional

        pixels = 255 * (image * self._std + self._mean)
        return functional.to_pil_image(pixels.round().clamp(0, 255).to(torch.uint8))


def _normalised(mean: torch.Tensor, std: torch.Tensor, picture: Any) -> torch.Tensor:
    from torchvision.transforms.v2 import functional

    pixels: torch.Tensor = functional.to_dtype(functional.pil_to_tensor(picture), torch.float32, scale=True)
    return (pixels - mean) / std
