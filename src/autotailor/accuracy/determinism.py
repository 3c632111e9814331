"""Settings of PyTorch that make training and evaluation give the same numbers in every run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from autotailor.accuracy.allocator import keep_freed_memory


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Uses deterministic algorithms and a fixed number of threads; restores PyTorch's global state afterwards."""
    keep_freed_memory()
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
        torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]
