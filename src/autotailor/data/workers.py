"""Batches that several workers prepare: processes where they are forked, threads elsewhere.

A process that starts afresh (macOS, Windows, Python 3.14) imports PyTorch and the main script before its first picture,
for every pass over a data set: seconds each, hundreds of times in a run. Pillow and PyTorch give the interpreter's lock
back while they decode and scale, so that threads open pictures side by side as well, without a start.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

if TYPE_CHECKING:
    from autotailor.data.splits import Batch

AHEAD = 2  # batches for each worker that are prepared before they are asked for


def batches(items: Dataset[Any], batch_size: int, workers: int) -> Iterator[Batch]:
    """All items in order, collated; the last batch may be smaller.

    Args:
        items: with a length; may be read from several threads at once.
        batch_size: items in a batch.
        workers: processes or threads; 0: this thread does it.
    """
    if workers and _start_method() != "fork":
        return _threaded(items, batch_size, workers)
    generator = torch.Generator().manual_seed(0)
    return iter(DataLoader(items, batch_size=batch_size, num_workers=workers, generator=generator))


def _start_method() -> str:
    """How processes start here; asking does not fix it."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]


def _threaded(items: Any, batch_size: int, workers: int) -> Iterator[Batch]:
    def prepare(first: int) -> Batch:
        batch: Batch = default_collate([items[i] for i in range(first, min(first + batch_size, len(items)))])
        return batch[0], batch[1]

    pool, ahead = ThreadPoolExecutor(workers, thread_name_prefix="pictures"), deque[Future["Batch"]]()
    try:
        for first in range(0, len(items), batch_size):
            ahead.append(pool.submit(prepare, first))
            if len(ahead) > AHEAD * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:  # also where the reader has seen enough
        pool.shutdown(wait=True, cancel_futures=True)
