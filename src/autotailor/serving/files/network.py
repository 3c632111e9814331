"""A member as a network of ncnn's Python wheel, which gathers its weights from the shared files while it loads."""

import ctypes
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.serving.errors import PoolError
from autotailor.serving.files.index import REMEDY, Member
from autotailor.serving.files.opened import OpenPool


def load_member(pool: OpenPool, member: Member) -> Any:
    """A loaded ``ncnn.Net`` with the threads and options of the pool's measurements.

    Raises:
        PoolError: a file of the member is damaged, or the pieces are not those that the network reads.
    """
    import ncnn

    net = ncnn.Net()
    option = net.opt
    for name, value in pool.index.options:
        if not hasattr(option, name):
            raise PoolError(f"{pool.folder}: ncnn {ncnn.__version__} has no option {name}; install another version")
        setattr(option, name, value)
    option.num_threads = pool.index.threads
    net.opt = option
    if net.load_param_mem(pool.param(member)) != 0:
        raise PoolError(f"{pool.folder}: ncnn {ncnn.__version__} cannot read {member.name}.param; {REMEDY}")
    reader = piece_reader(pool.read(piece) for piece in pool.pieces(member))
    code = net.load_model(reader)
    if reader.error is not None:
        raise reader.error
    if code != 0 or not reader.finished():
        raise PoolError(f"{pool.folder}: {member.name}.slices is not what {member.name}.param reads; {REMEDY}")
    return net


def piece_reader(pieces: Iterable[npt.NDArray[Any]]) -> Any:
    """An ``ncnn.DataReader`` that hands out arrays one after the other, each made when ncnn asks for it."""
    return _reader_class()(pieces)


@cache
def _reader_class() -> Callable[[Iterable[npt.NDArray[Any]]], Any]:
    """The class, made on first use, because its base is ncnn's."""
    import ncnn

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

    class Reader(ncnn.DataReader):  # type: ignore[misc, name-defined, unused-ignore]
        """Hands out bytes, however many ncnn asks for at a time; ``asked`` lists these numbers."""

        def __init__(self, pieces: Iterable[npt.NDArray[Any]]) -> None:
            super().__init__()
            self.chunks: Iterator[npt.NDArray[Any]] = iter(pieces)
            self.left = np.empty(0, np.uint8)
            self.asked: list[int] = []
            self.error: PoolError | None = None

        def read(self, buffer: Any, size: int) -> int:
            """Copies up to ``size`` bytes; fewer where the pieces end or one is damaged."""
            self.asked.append(size)
            target, done = address(buffer, None), 0
            while done < size and self._refill():
                part = self.left[: size - done]
                ctypes.memmove(target + done, part.ctypes.data, len(part))
                self.left, done = self.left[len(part) :], done + len(part)
            return done

        def finished(self) -> bool:
            """Whether all has been read."""
            return not self._refill()

        def _refill(self) -> bool:
            """Whether bytes are left; takes the next piece where the last one is used up.

            No error leaves this method, because ncnn would not hand it on.
            """
            try:
                while not len(self.left):
                    piece = next(self.chunks, None)
                    if piece is None:
                        return False
                    self.left = np.ascontiguousarray(piece).view(np.uint8)
            except PoolError as error:
                self.error = self.error or error
                return False
            return True

    return Reader
