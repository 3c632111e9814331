"""``NAME.slices``: where each piece of a member's weights lies in the files that all members share.

ncnn reads a network's weights front to back. Each line stands for one piece of what it reads::

    tag 0
    slice 4096 64x32x3x3 0:48x0:16,24:32x0:3x0:3 512 1
    norms 704 48

These are ncnn's storage tag, the weight of a convolution, and its bias. The weight is a slice of the tensor of shape
64x32x3x3 at byte 4096 of ``weights.bin``: of its first axis entries 0 to 47, of its second 0 to 15 and 24 to 31. Each
of its 48 output channels is multiplied by one of the 48 numbers at byte 512 of ``norms.bin`` (1: one number for each
entry of the first taken axis; ``- 0``: no numbers). The bias is 48 numbers of ``norms.bin`` as they are.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.serving.errors import PoolError
from autotailor.serving.files.index import REMEDY

Ranges = tuple[tuple[int, int], ...]
Float32 = npt.NDArray[np.float32]
Stored = npt.NDArray[Any]
FLOAT = 4
"""Bytes of a float of single precision."""


@dataclass(frozen=True)
class Tag:
    """ncnn's storage tag before a weight: four bytes, 0 for single precision."""

    value: int

    def line(self) -> str:
        """The line of the file."""
        return f"tag {self.value}"

    def read(self, weights: Stored, norms: Float32) -> npt.NDArray[np.uint32]:
        """The tag as an array of one element; the arguments are those of the other pieces."""
        return np.array([self.value], dtype="<u4")


@dataclass(frozen=True)
class Norms:
    """Numbers of ``norms.bin`` as they are.

    Attributes:
        offset: in bytes.
        count: of the numbers.
    """

    offset: int
    count: int

    def line(self) -> str:
        """The line of the file."""
        return f"norms {self.offset} {self.count}"

    def read(self, weights: Stored, norms: Float32) -> Float32:
        """The numbers, ``[count]``."""
        return _part(norms, self.offset, self.count, "norms.bin")


@dataclass(frozen=True)
class Slice:
    """A slice of a tensor of ``weights.bin``, perhaps scaled.

    Attributes:
        offset: of the tensor, in bytes.
        shape: of the tensor.
        take: for each axis the half-open ranges that are taken, in their order.
        scale: offset in ``norms.bin`` of the factors, in bytes; None without factors.
        scaled: number of leading axes whose combinations of taken entries have one factor each.
    """

    offset: int
    shape: tuple[int, ...]
    take: tuple[Ranges, ...]
    scale: int | None = None
    scaled: int = 0

    @property
    def taken(self) -> tuple[int, ...]:
        """Shape of what is taken."""
        return tuple(sum(end - start for start, end in ranges) for ranges in self.take)

    def line(self) -> str:
        """The line of the file."""
        take = "x".join(",".join(f"{start}:{end}" for start, end in ranges) for ranges in self.take)
        scale = "-" if self.scale is None else self.scale
        return f"slice {self.offset} {'x'.join(map(str, self.shape))} {take} {scale} {self.scaled}"

    def read(self, weights: Stored, norms: Float32) -> Float32:
        """The slice, flat, in single precision."""
        tensor = _part(weights, self.offset, math.prod(self.shape), "weights.bin").reshape(self.shape)
        for axis, ranges in enumerate(self.take):
            parts = [tensor[(slice(None),) * axis + (slice(start, end),)] for start, end in ranges]
            tensor = parts[0] if len(parts) == 1 else np.concatenate(parts, axis)
        values = tensor.astype(np.float32, copy=False)
        if self.scale is not None:
            shape = self.taken[: self.scaled]
            factors = _part(norms, self.scale, math.prod(shape), "norms.bin")
            values = values * factors.reshape(*shape, *(1,) * (len(self.shape) - self.scaled))
        return np.ascontiguousarray(values).reshape(-1)


Piece = Tag | Norms | Slice


def pieces_text(pieces: Sequence[Piece]) -> str:
    """The file ``NAME.slices``."""
    return "".join(f"{piece.line()}\n" for piece in pieces)


def parse_pieces(text: str, path: str) -> tuple[Piece, ...]:
    """Reads a file ``NAME.slices``.

    Args:
        text: of the file.
        path: for messages.

    Raises:
        PoolError: a line is none of a piece.
    """
    pieces = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            pieces.append(_piece(line))
        except ValueError as error:
            raise PoolError(f"{path}, line {number}: {error}; {REMEDY}") from error
    return tuple(pieces)


_SIZES = r"\d+(?:x\d+)*"
_RANGES = r"\d+:\d+(?:,\d+:\d+)*"
_TAG = re.compile(r"tag (\d+)", re.ASCII)
_NORMS = re.compile(r"norms (\d+) (\d+)", re.ASCII)
_SLICE = re.compile(rf"slice (\d+) ({_SIZES}) ({_RANGES}(?:x{_RANGES})*) (\d+|-) (\d+)", re.ASCII)


def _piece(line: str) -> Piece:
    if match := _TAG.fullmatch(line):
        return Tag(int(match[1]))
    if match := _NORMS.fullmatch(line):
        return Norms(int(match[1]), int(match[2]))
    match = _SLICE.fullmatch(line)
    if match is None:
        raise ValueError(f"{line[:80]!r} is no piece")
    shape = tuple(int(size) for size in match[2].split("x"))
    take = tuple(_ranges(ranges) for ranges in match[3].split("x"))
    piece = Slice(int(match[1]), shape, take, None if match[4] == "-" else int(match[4]), int(match[5]))
    fits = len(shape) == len(take) and all(
        0 <= start < end <= size for size, ranges in zip(shape, take, strict=False) for start, end in ranges
    )
    if not fits or (piece.scale is None) != (piece.scaled == 0) or piece.scaled > len(shape):
        raise ValueError(f"{line[:80]!r} takes what the tensor does not have")
    return piece


def _ranges(text: str) -> Ranges:
    pairs = (pair.split(":") for pair in text.split(","))
    return tuple((int(start), int(end)) for start, end in pairs)


def _part(values: Stored, offset: int, count: int, file: str) -> Stored:
    """Consecutive values of a file; raises PoolError where the file does not have them."""
    first, odd = divmod(offset, values.itemsize)
    if odd or first + count > len(values):
        raise PoolError(
            f"{file}: a member reads {count} numbers from byte {offset}, and the file has {len(values)} numbers of "
            f"{values.itemsize} bytes; {REMEDY}"
        )
    return values[first : first + count]
