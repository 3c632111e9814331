"""Opened held-out pictures: in memory up to a limit, above it in a file that the system maps into memory.

The file has no name once it is open, so that it is gone with the process, however the process ends. Its space on the
disk is reserved before the first picture is opened; where the disk has too little, pictures are opened in each
evaluation, and a warning says so.
"""

from __future__ import annotations

import logging
import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from autotailor.data.pictures.config import PictureConfig

logger = logging.getLogger(__name__)
GIB = 2**30


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
