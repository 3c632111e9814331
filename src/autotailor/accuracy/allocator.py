"""Freed memory stays with the process: training asks for the same large tensors again in every step.

By default glibc maps each of them anew and hands it back to the system, which then clears its pages for the next:
about a fifth of a training step (``benchmarks/training.py``).
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of <malloc.h>
LARGEST_INT = 2**31 - 1


@cache
def keep_freed_memory() -> bool:
    """Tells glibc to keep what is freed, once for this process; returns whether it did (elsewhere nothing changes)."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, LARGEST_INT))
