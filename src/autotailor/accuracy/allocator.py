"""Lets the process keep freed memory, because every training step allocates the same large tensors again.

By default glibc returns each large tensor's memory to the system and maps it again in the next step, and the system
clears the mapped pages. This takes about a fifth of a training step (``benchmarks/training.py``).
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of <malloc.h>
LARGEST_INT = 2**31 - 1


@cache
def keep_freed_memory() -> bool:
    """Tells glibc, once for this process, to keep freed memory.

    Returns:
        Whether glibc accepted; with another C library nothing changes.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, LARGEST_INT))
