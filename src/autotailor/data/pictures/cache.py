"""Opened pictures, kept: for the process in memory or in a mapped file, and for later rules on disk.

Held-out pictures lie in memory up to a limit, above it in a file that the system maps into memory. The file has no name
once it is open, so that it is gone with the process, however the process ends. Its space on the disk is reserved before
the first picture is opened; where the disk has too little, pictures are opened in each evaluation, and a warning says
so.

To decode photographs takes each rule minutes, where there are thousands. So what a rule has made of a picture whose
content is known (``identity``) lies in a file for the next rule, named by the content and by all that was done to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.artifacts import swept
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.reading import EXAMINER

logger = logging.getLogger(__name__)
GIB = 2**30
FOLDER, VERSION = "pictures", "1"
"""The folder within ``data.cache``, and the version of how its files are made; files of other versions are not read."""
Pixels = npt.NDArray[np.uint8]


def identity(opener: Callable[[int], Any], number: int) -> str:
    """What a picture's pixels follow from: its content and its background; "" where the opener cannot tell."""
    identify = getattr(opener, "identity", None)
    return str(identify(number)) if identify else ""


def remembered(config: PictureConfig, picture: str, how: str, make: Callable[[], Pixels]) -> Pixels:
    """Pixels that an earlier rule has made of a picture or mask; else they are made, and kept for later rules.

    Args:
        config: with the folder; without one nothing is kept.
        picture: its ``identity``; nothing is kept of a picture without one.
        how: all that is done to the picture.
        make: does it.
    """
    if not config.cache or not picture:
        return make()
    name = hashlib.sha256(f"{VERSION}, {EXAMINER}, {picture}, {how}".encode()).hexdigest()
    path = swept(Path(config.cache).expanduser() / FOLDER) / f"{name}.npy"
    with contextlib.suppress(OSError, ValueError, EOFError):
        stored = np.load(path, allow_pickle=False)
        if stored.dtype == np.uint8 and stored.ndim in (2, 3):
            os.utime(path)
            return np.asarray(stored)
    pixels = make()
    with contextlib.suppress(OSError):  # a full disk, or a folder that nobody may write
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            np.save(unfinished := Path(folder) / path.name, pixels)
            unfinished.replace(path)
    return pixels


def keep(shape: tuple[int, ...], opened: Iterable[torch.Tensor], config: PictureConfig) -> torch.Tensor | None:
    """All pictures as one tensor; None where they are more than the configuration lets be kept.

    Args:
        shape: of the tensor, ``[n, 3, R, R]``.
        opened: batches of pictures in their order, uint8. They are not read where nothing is kept.
        config: with the limit of the memory, and the folder of the file.
    """
    size = math.prod(shape)
    pixels = torch.empty(shape, dtype=torch.uint8) if size <= config.memory_gib * GIB else _mapped(shape, size, config)
    if pixels is None:
        return None
    first = 0
    for batch in opened:
        pixels[first : first + len(batch)] = batch
        first += len(batch)
    return pixels


def _mapped(shape: tuple[int, ...], size: int, config: PictureConfig) -> torch.Tensor | None:
    """A tensor whose memory is a file of the configuration's folder; None without a folder, or space on its disk."""
    if not config.cache:
        return None
    try:
        folder = Path(config.cache).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):  # otherwise a full disk would end the process while it writes
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return torch.from_numpy(np.memmap(file, np.uint8, "r+", shape=shape))
    except OSError as error:
        logger.warning(
            "data %s: %.1f GiB of opened pictures cannot be kept in %s (%s); they are opened again in each evaluation. "
            "Make room, or name another folder as data.cache",
            config.name,
            size / GIB,
            config.cache,
            error.strerror or error,
        )
        return None
