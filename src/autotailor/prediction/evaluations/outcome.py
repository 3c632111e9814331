"""What one network says of each image of an evaluation set, and how files hold it."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
LossArray = npt.NDArray[np.float32]

_LOSS = np.dtype("<f4")  # the same bytes on every machine


@dataclass(frozen=True, eq=False)
class Outcome:
    """Answers and losses of one network on ``n`` images.

    Attributes:
        right: whether each image is classified correctly, ``[n]``.
        losses: cross entropy of each image's label, in nats, ``[n]``; finite.
    """

    right: BoolArray
    losses: LossArray

    def packed(self) -> tuple[str, str]:
        """Two texts in Base64: a bit for each answer, from the highest bit of a byte on, and four bytes for each loss.

        Losses are IEEE 754 numbers of 32 bits, the lowest byte first, so that ``unpacked`` finds the same numbers.
        """
        return _text(np.packbits(self.right).tobytes()), _text(np.asarray(self.losses, dtype=_LOSS).tobytes())

    @classmethod
    def unpacked(cls, right: str, losses: str, images: int) -> Outcome:
        """Reads the texts of ``packed``.

        Args:
            right: the answers.
            losses: the losses.
            images: number of images.

        Raises:
            ValueError: a text is no Base64, has not the length that belongs to so many images, or a loss is not finite.
        """
        bits = np.frombuffer(base64.b64decode(right, validate=True), dtype=np.uint8)
        if len(bits) != -(-images // 8):
            raise ValueError(f"expected a bit for each of {images} images, found {len(bits)} bytes")
        numbers = base64.b64decode(losses, validate=True)
        if len(numbers) != _LOSS.itemsize * images:
            raise ValueError(f"expected a loss for each of {images} images, found {len(numbers)} bytes")
        found = np.frombuffer(numbers, dtype=_LOSS).astype(np.float32)
        if not np.isfinite(found).all():
            raise ValueError("a loss is not finite")
        return cls(np.unpackbits(bits, count=images).astype(np.bool_), found)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
