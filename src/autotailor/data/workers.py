"""Batches that several workers prepare.

Held-out pictures are opened by threads: SubNets are evaluated by several threads at once, and a process that one thread
forks while another thread holds a lock may die or hang. Pillow and PyTorch give the interpreter's lock back while they
decode and scale, so that threads open pictures side by side.

The training stream is read by one thread while no other one computes, all day long, and small pictures keep the lock
busy: two processes prepared 1,950 images a second of pictures of 100 pixels, two threads 1,440. So the training stream
has processes where they are forked. A process that starts afresh (macOS, Python 3.14) would import PyTorch first.
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

AHEAD = 2  # batches for each worker that are prepared before they are asked for


def batches(items: Any, batch_size: int, workers: int) -> Iterator[Batch]:
    """All items in order, collated by threads; the last batch may be smaller.

    Args:
        items: a dataset with a length; may be read from several threads at once.
        batch_size: items in a batch.
        workers: threads; 0: the calling thread does it.
    """

    def prepare(first: int) -> Batch:
        batch: Batch = default_collate([items[i] for i in range(first, min(first + batch_size, len(items)))])
        return batch[0], batch[1]

    starts = range(0, len(items), batch_size)
    return _ahead(prepare, starts, workers) if workers else map(prepare, starts)


def forked_batches(items: Any, batch_size: int, workers: int) -> Iterator[Batch]:
    """The same by processes, where the main thread asks and processes are forked; by threads elsewhere."""
    if not workers or _start_method() != "fork" or threading.current_thread() is not threading.main_thread():
        return batches(items, batch_size, workers)
    generator = torch.Generator().manual_seed(0)
    return iter(DataLoader(items, batch_size=batch_size, num_workers=workers, generator=generator))


def _start_method() -> str:
    """How processes start here; asking does not fix it."""
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
    finally:  # also where the reader has seen enough
        pool.shutdown(wait=True, cancel_futures=True)
