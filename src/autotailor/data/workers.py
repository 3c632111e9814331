"""Batches that several threads or processes prepare.

Threads open held-out pictures: several threads evaluate SubNets at once, and a process that one thread forks while
another thread holds a lock may die or hang. Pillow and PyTorch release the interpreter's lock while they decode and
scale, so that threads open pictures side by side.

Forked processes open the pictures of the training stream: only one thread reads the stream, and small pictures keep
the interpreter's lock busy. Two processes prepared 1,950 images per second of pictures of 100 pixels, two threads
1,440. Where processes cannot be forked (macOS, Python 3.14), threads open these pictures, too, because a process that
starts afresh would have to import PyTorch first.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, default_collate

if TYPE_CHECKING:
    from autotailor.data.splits import Batch

AHEAD = 2  # batches per worker that are prepared before the reader asks for them


def batches(items: Any, batch_size: int, workers: int) -> Iterator[Batch]:
    """Batches of all items in order, prepared by threads; the last batch may be smaller.

    Args:
        items: a dataset with a length, which several threads may read at once.
        batch_size: items in a batch.
        workers: number of threads; with 0, the calling thread prepares the batches.
    """

    def prepare(first: int) -> Batch:
        batch: Batch = default_collate([items[i] for i in range(first, min(first + batch_size, len(items)))])
        return batch[0], batch[1]

    starts = range(0, len(items), batch_size)
    return _ahead(prepare, starts, workers) if workers else map(prepare, starts)


def forked_batches(items: Any, batch_size: int, workers: int) -> Iterator[Batch]:
    """Like ``batches``, but prepared by processes where these are forked and the main thread is the caller."""
    if not workers or _start_method() != "fork" or threading.current_thread() is not threading.main_thread():
        return batches(items, batch_size, workers)
    generator = torch.Generator().manual_seed(0)
    return iter(DataLoader(items, batch_size=batch_size, num_workers=workers, generator=generator))


def _start_method() -> str:
    """How processes start on this system; unlike ``get_start_method()``, this call does not fix the method."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]


def _ahead(prepare: Callable[[int], Batch], starts: range, workers: int) -> Iterator[Batch]:
    pool, ahead = ThreadPoolExecutor(workers, thread_name_prefix="pictures"), deque[Future["Batch"]]()
    try:
        for first in starts:
            ahead.append(pool.submit(prepare, first))
            if len(ahead) > AHEAD * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:  # runs, too, where the reader stops before the last batch
        pool.shutdown(wait=True, cancel_futures=True)
