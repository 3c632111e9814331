"""What one network says of each image of an evaluation set, and how files hold it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.metric import FloatArray

BoolArray = npt.NDArray[np.bool_]
LossArray = npt.NDArray[np.float32]

LOSSES, DIVERGENCES = "losses", "divergences"
"""How files call the losses of images, and those that are divergences (``Outcome.is_divergence``)."""
_VALUE, _LOSS = np.dtype("<f2"), np.dtype("<f4")  # the same bytes on every machine


@dataclass(frozen=True, eq=False)
class Outcome:
    """Values and losses of one network on ``n`` images.

    Values are kept as precisely as a file keeps them, so that an interrupted run goes on with the same numbers.

    Attributes:
        values: how right the network is about each image, from 0 to 1, ``[n]``. A classifier is right (1) or wrong (0);
            other values are rounded to numbers of 16 bits.
        losses: of each image, for a classifier the cross entropy of its label in nats, ``[n]``; finite.
        is_divergence: whether losses are instead how far the outputs are from those of the largest SubNet
            (``Task.apart``), for a classifier the Kullback-Leibler divergence in nats.
        counts: see ``Judgement``, ``[n, ...]``; files do not hold them.

    Raises:
        PredictionError: a value is not between 0 and 1.
    """

    values: FloatArray
    losses: LossArray
    counts: npt.NDArray[Any] | None = None
    is_divergence: bool = False

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=_VALUE).astype(np.float64)
        if not ((values >= 0.0) & (values <= 1.0)).all():
            raise PredictionError(
                "values of images lie between 0 and 1; check what the task says of each image (judge)"
            )
        object.__setattr__(self, "values", values)

    @property
    def kind(self) -> str:
        """How files call the losses."""
        return DIVERGENCES if self.is_divergence else LOSSES

    @property
    def kept(self) -> npt.NDArray[Any]:
        """What ``Task.shares`` reads of each image, ``[n, ...]``."""
        return self.values if self.counts is None else self.counts

    def packed(self) -> tuple[str, str]:
        """Two texts in Base64: the values, and four bytes for each loss.

        Where all values are 0 or 1, each is a bit, from the highest bit of a byte on; else each has two bytes. Losses
        are IEEE 754 numbers of 32 bits, values of 16 bits, the lowest byte first, so that ``unpacked`` finds the same
        numbers.
        """
        is_right = self.values == 1.0
        bits = np.packbits(is_right) if (is_right | (self.values == 0.0)).all() else self.values.astype(_VALUE)
        return _text(bits.tobytes()), _text(np.asarray(self.losses, dtype=_LOSS).tobytes())

    @classmethod
    def unpacked(cls, values: str, losses: str, images: int, is_divergence: bool = False) -> Outcome:
        """Reads the texts of ``packed``.

        Args:
            values: the values.
            losses: the losses.
            images: number of images.
            is_divergence: see ``Outcome``.

        Raises:
            ValueError: a text is no Base64, has not the length that belongs to so many images, or a number of it cannot
                be.
        """
        numbers = base64.b64decode(losses, validate=True)
        if len(numbers) != _LOSS.itemsize * images:
            raise ValueError(f"expected a loss for each of {images} images, found {len(numbers)} bytes")
        per_image = np.frombuffer(numbers, dtype=_LOSS).astype(np.float32)
        if not np.isfinite(per_image).all():
            raise ValueError("a loss is not finite")
        try:
            right = _values(base64.b64decode(values, validate=True), images)
            return cls(right, per_image, is_divergence=is_divergence)
        except PredictionError as error:
            raise ValueError(str(error)) from error


def _values(content: bytes, images: int) -> FloatArray:
    """The values of so many images from bits, or from two bytes for each."""
    if len(content) == -(-images // 8):
        return np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=images).astype(np.float64)
    if len(content) == _VALUE.itemsize * images:
        return np.frombuffer(content, dtype=_VALUE).astype(np.float64)
    raise ValueError(f"expected a bit or two bytes for each of {images} images, found {len(content)} bytes")


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


class PredictionError(AutoTailorError):
    """Accuracies cannot be predicted from these evaluations."""
