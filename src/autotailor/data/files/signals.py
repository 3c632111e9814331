"""Signals of arrays as training streams and evaluation sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.data.seeding import generator
from autotailor.data.splits import Batch, EvaluationSet, TrainStream, check_batches

ORDER, CHANGE = 11, 12  # seed words
READ = 4096  # signals that are read at once
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Signals:
    """Some signals of an array, as a network reads them.

    Attributes:
        values: the array.
        positions: of the signals in the array.
        last: whether the channels of a signal stand last.
        mean, std: of each channel.
    """

    values: Array
    positions: npt.NDArray[np.int64]
    last: bool
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def scale(self) -> float:
        """What numbers are divided by before anything else: 255 where they are bytes."""
        return 255.0 if self.values.dtype == np.uint8 else 1.0

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a signal as a map; the height of a series is 1."""
        sizes = self.values.shape[1:]
        sizes = (sizes[-1], *sizes[:-1]) if self.last and len(sizes) > 1 else sizes
        channels, *sides = sizes if len(sizes) > 1 else (1, *sizes)
        return int(channels), int(sides[0]) if len(sides) > 1 else 1, int(sides[-1])

    def plain(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Signals before normalisation, float32 ``[b, channels, height, width]``."""
        signals = np.asarray(self.values[self.positions[rows]]).astype(np.float32) / np.float32(self.scale)
        signals = np.moveaxis(signals, -1, 1) if self.last and signals.ndim > 2 else signals
        return np.ascontiguousarray(signals.reshape(len(rows), *self.shape))

    def __call__(self, rows: npt.NDArray[np.int64]) -> torch.Tensor:
        """Normalised signals, float32 ``[b, channels, height, width]``."""
        mean, std = (np.array(each, dtype=np.float32).reshape(-1, 1, 1) for each in (self.mean, self.std))
        return torch.from_numpy((self.plain(rows) - mean) / std)

    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation of each channel over all signals."""
        sums, squares, seen = 0.0, 0.0, 0
        for first in range(0, len(self), READ):
            batch = self.plain(np.arange(first, min(first + READ, len(self)))).astype(np.float64)
            sums, squares = sums + batch.sum((0, 2, 3)), squares + np.square(batch).sum((0, 2, 3))
            seen += batch.shape[0] * batch.shape[2] * batch.shape[3]
        mean = np.asarray(sums) / seen
        std = np.sqrt(np.maximum(np.asarray(squares) / seen - mean**2, 1e-12))
        return tuple(float(f"{each:.6g}") for each in mean), tuple(float(f"{each:.6g}") for each in std)


class SignalSet(EvaluationSet):
    """The signals of validation or test, which are read batch by batch.

    Args:
        signals: normalised.
        labels, groups: ``[n]``; labels ``[n, k]`` where they are numbers.
        task: of the labels.
    """

    def __init__(self, signals: Signals, labels: Array, groups: npt.NDArray[np.int64], task: str) -> None:
        self._signals, self.labels, self.groups, self.task = signals, labels, groups, task

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """See EvaluationSet."""
        check_batches(batch_size)
        for first in range(0, len(self), batch_size):
            rows = np.arange(first, min(first + batch_size, len(self)))
            yield self._signals(rows), torch.from_numpy(self.labels[rows])


class SignalStream(TrainStream):
    """Training signals in a new order each epoch, moved along their length, and with noise.

    Args:
        signals: normalised.
        labels: ``[n]``, or ``[n, k]``.
        seed: of order and changes.
        shift: most numbers by which a signal is moved to either side.
        noise: standard deviation of what is added to normalised signals.
    """

    def __init__(self, signals: Signals, labels: Array, seed: int, shift: int, noise: float) -> None:
        self._signals, self._labels, self._seed, self._shift, self._noise = signals, labels, seed, shift, noise

    def __len__(self) -> int:
        """Signals per epoch."""
        return len(self._signals)

    def batches(self, epoch: int, batch_size: int, start: int = 0) -> Iterator[Batch]:
        """See TrainStream."""
        check_batches(batch_size, epoch, start)
        order = np.random.default_rng([self._seed, ORDER, epoch]).permutation(len(self))
        size = min(batch_size, len(self))
        for number in range(start, self.num_batches(batch_size)):
            rows = order[number * size : (number + 1) * size]
            signals = [self._changed(one, epoch, int(row)) for one, row in zip(self._signals(rows), rows, strict=True)]
            yield torch.stack(signals), torch.from_numpy(self._labels[rows])

    def _changed(self, signal: torch.Tensor, epoch: int, row: int) -> torch.Tensor:
        """One signal ``[channels, height, width]`` as this epoch shows it."""
        if not self._shift and not self._noise:
            return signal
        random = generator(self._seed, CHANGE, epoch, row)
        by = int(torch.randint(-self._shift, self._shift + 1, (1,), generator=random))
        return signal.roll(by, -1) + self._noise * torch.randn(signal.shape, generator=random)
