"""A pool whose shared files are mapped into memory: every process and every member reads the same pages."""

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import open_regular
from autotailor.serving.errors import PoolError
from autotailor.serving.files.index import INDEX, MEMBERS, NORMS, PRECISIONS, REMEDY, WEIGHTS, File, Index, Member
from autotailor.serving.files.pieces import FLOAT, Float32, Piece, Slice, Stored, Tag, parse_pieces

MOST_TEXT = 64 * 2**20
"""Bytes of a file of text, as the server in C++ bounds them."""


@dataclass(frozen=True, eq=False)
class OpenPool:
    """A pool that can be read.

    Attributes:
        folder: of its files.
        index: the content of ``pool.txt``.
        weights: mapped, flat, of the index's precision.
        norms: mapped, flat.
    """

    folder: Path
    index: Index
    weights: Stored
    norms: Float32

    def member(self, name: str) -> Member:
        """A member by its name.

        Raises:
            PoolError: there is no such member.
        """
        members = {member.name: member for member in self.index.members}
        if name not in members:
            raise PoolError(f"{self.folder}: there is no member {name}; members are {', '.join(members)}")
        return members[name]

    def param(self, member: Member) -> str:
        """The text of a member's network; raises PoolError where the file is not the one of ``pool.txt``."""
        return _text(self.folder / MEMBERS / f"{member.name}.param", member.param)

    def pieces(self, member: Member) -> tuple[Piece, ...]:
        """The pieces of a member's weights, in the order in which ncnn reads them.

        Raises:
            PoolError: the file is not the one of ``pool.txt``, or a line is none of a piece.
        """
        path = self.folder / MEMBERS / f"{member.name}.slices"
        return parse_pieces(_text(path, member.slices), str(path))

    def read(self, piece: Piece) -> npt.NDArray[np.float32 | np.uint32]:
        """A piece, flat, little-endian; raises PoolError where it lies outside of its file."""
        return piece.read(self.weights, self.norms)

    def size(self, member: Member) -> int:
        """Bytes of a member's weights once they are read: those of its ``.bin``."""
        return sum(_bytes_of(piece) for piece in self.pieces(member))


def whole_pool(folder: str | Path) -> OpenPool:
    """Opens a pool whose files are all there; raises PoolError as ``open_pool`` does, also for a member's files."""
    pool = open_pool(folder)
    for member in pool.index.members:
        pool.param(member)
        pool.pieces(member)
    return pool


def open_pool(folder: str | Path) -> OpenPool:
    """Opens a pool, and compares the hashes of the two shared files, which reads them once.

    Args:
        folder: with ``pool.txt``.

    Raises:
        PoolError: a file is missing, cut or changed.
    """
    path = Path(folder)
    index = Index.parse(_read(path / INDEX), str(path / INDEX))
    weights = _mapped(path / WEIGHTS, index.weights, PRECISIONS[index.precision])
    return OpenPool(path, index, weights, _mapped(path / NORMS, index.norms, "<f4"))


def _bytes_of(piece: Piece) -> int:
    """Bytes of a piece once it is read."""
    if isinstance(piece, Tag):
        return FLOAT
    return FLOAT * (math.prod(piece.taken) if isinstance(piece, Slice) else piece.count)


def _mapped(path: Path, file: File, kind: str) -> Stored:
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise PoolError(f"{path}: cannot be read ({error.strerror}); {REMEDY}") from error
    if size != file.bytes or size % np.dtype(kind).itemsize:
        raise PoolError(f"{path}: has {size} bytes, expected {file.bytes}; {REMEDY}")
    with path.open("rb") as stream:
        _compare(path, hashlib.file_digest(stream, "sha256").hexdigest(), file.sha256)
    return np.memmap(path, kind, "r") if size else np.empty(0, kind)  # an empty file cannot be mapped


def _text(path: Path, expected: str) -> str:
    content = _read(path)
    _compare(path, hashlib.sha256(content).hexdigest(), expected)
    return content.decode("utf-8")


def _read(path: Path) -> bytes:
    try:
        with open_regular(path, MOST_TEXT) as stream:
            return stream.read()
    except OSError as error:
        raise PoolError(f"{path}: cannot be read ({error.strerror}); {REMEDY}") from error


def _compare(path: Path, actual: str, expected: str) -> None:
    if actual != expected:
        raise PoolError(f"{path}: its content has SHA-256 {actual[:12]}, expected {expected[:12]}; {REMEDY}")
