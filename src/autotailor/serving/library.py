"""``libautotailor.so``, the engine that runs pools (``src/runner/serve/autotailor.h``), and the server beside it.

Both are built for this computer by ``make serve TARGETS=host``; without a clone, by ``autotailor runner --serve host``.
"""

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from autotailor.project import places
from autotailor.serving.errors import PoolError

LIBRARY, SERVER = "libautotailor.so", "autotailor-serve"
VERSION = 2
"""AUTOTAILOR_API_VERSION of the header that this module calls."""


class Result(ctypes.Structure):
    """``autotailor_result``."""

    _fields_ = (("member", c_uint32), ("flags", c_uint32), ("latency_ms", c_float), ("cpu_ms", c_float))


class Reached(ctypes.Structure):
    """``autotailor_reached``."""

    _fields_ = (("exit", c_uint32), ("confidence", c_float))


class Cost(ctypes.Structure):
    """``autotailor_cost``."""

    _fields_ = tuple((name, c_double) for name in ("accuracy", "compute_ms", "memory_ms", "fixed_ms", "energy_mj"))


class Chosen(ctypes.Structure):
    """``autotailor_choice``."""

    _fields_ = (("member", c_uint32), ("event", c_char_p), ("latency_ms", c_double))


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "open": (c_void_p, (c_char_p, c_char_p)),
    "close": (None, (c_void_p,)),
    "sizes": (c_int, (c_void_p, POINTER(c_int), POINTER(c_int), POINTER(c_int), POINTER(c_size_t))),
    "infer_exits": (
        c_int,
        (c_void_p, c_void_p, c_int, c_int, c_int, c_float, c_void_p, c_size_t, POINTER(Result), POINTER(Reached)),
    ),
    "set": (c_int, (c_void_p, c_char_p)),
    "load": (c_int, (c_void_p, POINTER(c_double), POINTER(c_double))),
    "status": (c_size_t, (c_void_p, c_char_p, c_size_t)),
    "metrics": (c_size_t, (c_void_p, c_char_p, c_size_t)),
    "replay_open": (c_void_p, (POINTER(Cost), c_uint32, c_int, c_double, c_char_p)),
    "replay_close": (None, (c_void_p,)),
    "replay_set": (c_int, (c_void_p, c_char_p)),
    "replay_at": (c_int, (c_void_p, c_double, c_double, c_double)),
    "replay_ran": (c_int, (c_void_p, c_uint32, c_double, c_double)),
    "replay_choose": (c_int, (c_void_p, c_uint32, c_double, POINTER(Chosen))),
    "replay_best": (c_int, (c_void_p, POINTER(c_uint32), c_uint32, POINTER(c_uint32))),
    "replay_bounds": (c_int, (c_void_p, c_double, POINTER(c_double), c_uint32)),
    "replay_status": (c_size_t, (c_void_p, c_char_p, c_size_t)),
}


def built(name: str) -> Path:
    """What was built for this computer.

    Args:
        name: ``LIBRARY`` or ``SERVER``.

    Raises:
        PoolError: it was not built.
    """
    path = (places.runner_builds() / "host" / name).resolve()
    if not os.access(path, os.R_OK):
        raise PoolError(
            f"{name}, which runs pools on this computer, is missing at {path}: build it with: "
            f"{places.serve_command('host')}"
        )
    return path


@cache
def _loaded() -> ctypes.CDLL:
    path = built(LIBRARY)
    try:
        library = ctypes.CDLL(str(path))
        version = int(library.autotailor_version())
    except (OSError, AttributeError) as error:
        raise PoolError(f"{path}: cannot be loaded ({error}): build it with: {places.serve_command('host')}") from error
    if version != VERSION:
        raise PoolError(
            f"{path}: has version {version} of the interface, expected {VERSION}: build it anew with: "
            f"{places.serve_command('host')}"
        )
    library.autotailor_error.restype = c_char_p
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, f"autotailor_{name}", None)
        if function is None:
            raise PoolError(
                f"{path}: has no function autotailor_{name}: build it anew with: {places.serve_command('host')}"
            )
        function.restype, function.argtypes = result, arguments
    return library


@cache
def function(name: str) -> Callable[..., Any]:
    """A function of the library, by its name without ``autotailor_``; for what cannot fail.

    Raises:
        PoolError: the library was not built, cannot be loaded, or is another version's.
    """
    return getattr(_loaded(), f"autotailor_{name}")  # type: ignore[no-any-return]


def made(name: str, *arguments: Any) -> int:
    """What a function that returns a handle has made; raises PoolError with the library's words where it made none."""
    handle = function(name)(*arguments)
    if not handle:
        raise _failure()
    return int(handle)


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns 0; raises PoolError with the library's words where it fails."""
    if function(name)(*arguments) != 0:
        raise _failure()


def text(name: str, handle: int) -> str:
    """What a function writes; it may need more room from one call to the next, because the pool goes on."""
    size, write = 1 << 14, function(name)
    while True:
        place = ctypes.create_string_buffer(size)
        needed = write(handle, place, size)
        if needed == 0:
            raise _failure()
        if needed <= size:
            return place.value.decode()
        size = needed + 1024


def _failure() -> PoolError:
    return PoolError(function("error")().decode(errors="replace"))
