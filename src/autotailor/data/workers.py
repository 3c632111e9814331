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
import multiprocessing.util
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils.data import DataLoader, default_collate

from autotailor.data.errors import DataError
from autotailor.data.trouble import handover_trouble

if TYPE_CHECKING:
    from autotailor.data.splits import Batch

Group = TypeVar("Group")
AHEAD = 2  # batches per worker that are prepared before the reader asks for them


def batches(items: Any, batch_size: int, workers: int) -> Iterator[Batch]:
    """Batches of all items in order, prepared by threads; the last batch may be smaller.

    Args:
        items: a dataset with a length, which several threads may read at once.
        batch_size: items in a batch.
        workers: number of threads; with 0, the calling thread prepares the batches.
    """
    starts = range(0, len(items), batch_size)
    return chosen_batches(items, (list(range(first, min(first + batch_size, len(items)))) for first in starts), workers)


def chosen_batches(items: Any, keys: Iterable[list[Any]], workers: int) -> Iterator[Batch]:
    """Batches of the items with given keys, prepared by threads.

    Args:
        items: from a key to an item; several threads may read it at once.
        keys: of the items of each batch.
        workers: number of threads; with 0, the calling thread prepares the batches.
    """

    def prepare(group: list[Any]) -> Batch:
        batch: Batch = default_collate([items[key] for key in group])
        return batch[0], batch[1]

    return prepared(keys, prepare, workers)


def prepared(groups: Iterable[Group], prepare: Callable[[Group], Batch], workers: int) -> Iterator[Batch]:
    """The batch of each group in order, prepared by threads; with 0 workers, by the calling thread."""
    return _ahead(prepare, groups, workers) if workers else map(prepare, groups)


class TrainingLoader:
    """Prepares training batches by processes that live as long as the loader, so that each epoch starts at once.

    Where processes cannot be forked, or another thread than the main one asks, threads prepare the batches. Where CUDA
    is there, batches lie in pinned memory, from which the copy to the accelerator runs beside computations.

    Args:
        items: from a key to an item.
        workers: number of processes or threads; with 0, the calling thread prepares the batches.
    """

    def __init__(self, items: Any, workers: int) -> None:
        self._items, self._workers = items, workers
        self._keys: list[list[Any]] = []
        self._loader: DataLoader[Any] | None = None
        self._is_busy = False

    def batches(self, keys: Iterable[list[Any]]) -> Iterator[Batch]:
        """Batches of the items with given keys.

        While an earlier call has batches left, a further one is served by processes of its own.
        """
        if not self._workers or _start_method() != "fork" or threading.current_thread() is not threading.main_thread():
            yield from chosen_batches(self._items, keys, self._workers)
        elif self._is_busy:
            yield from _sound(self._fork(list(keys), persistent=False))
        else:
            self._is_busy = True
            try:
                self._keys[:] = keys
                self._loader = self._loader or self._fork(self._keys, persistent=True)
                yield from _sound(self._loader)
            finally:
                self._is_busy = False

    def _fork(self, keys: list[list[Any]], persistent: bool) -> DataLoader[Any]:
        multiprocessing.util.get_temp_dir()  # this process removes it; those of forked processes would stay
        return DataLoader(
            _WithErrors(self._items),  # type: ignore[arg-type]  # PyTorch asks for no more than __getitem__
            batch_sampler=keys,
            collate_fn=_collated,
            num_workers=self._workers,
            worker_init_fn=_heed_only_the_parent,
            persistent_workers=persistent,
            pin_memory=torch.cuda.is_available(),
            generator=torch.Generator().manual_seed(0),
        )


def _heed_only_the_parent(number: int) -> None:
    """Lets this process, which prepares images, end only where its parent ends it, or after its parent.

    Who ends a job or presses Ctrl-C sends a signal to all of its processes at once. The training then finishes its step
    and writes a checkpoint, and would fail instead where one of the processes that prepare images had ended before.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "sigwaitinfo"):  # macOS has no such call
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_by, args=(os.getppid(),), daemon=True).start()


def _end_by(parent: int) -> None:
    """Waits for SIGTERM from the parent, or from anybody once the parent has ended, and ends this process."""
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent == os.getppid():
        pass
    os._exit(0)


class _WithErrors:
    """Items, with a DataError in the place of each that cannot be read.

    PyTorch would put the traceback of the process that reads the item in front of the message.
    """

    def __init__(self, items: Any) -> None:
        self._items = items

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._items[key]
        except DataError as error:
            return error


def _collated(items: list[Any]) -> Any:
    """A batch of items, or the first DataError among the items."""
    return next((item for item in items if isinstance(item, DataError)), None) or default_collate(items)


def _sound(batches: Iterable[Any]) -> Iterator[Batch]:
    """Batches; raises the DataError that stands in the place of a batch, or one that says that a process has died."""
    reading = iter(batches)
    while True:
        try:
            batch = next(reading)
        except StopIteration:
            return
        except (RuntimeError, ConnectionError, EOFError) as error:
            if trouble := handover_trouble(error):
                raise DataError(trouble) from error
            raise
        if isinstance(batch, DataError):
            raise batch
        yield batch


def _start_method() -> str:
    """How processes start on this system; unlike ``get_start_method()``, this call does not fix the method."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]


def _ahead(prepare: Callable[[Group], Batch], groups: Iterable[Group], workers: int) -> Iterator[Batch]:
    pool, ahead = ThreadPoolExecutor(workers, thread_name_prefix="pictures"), deque[Future["Batch"]]()
    try:
        for group in groups:
            ahead.append(pool.submit(prepare, group))
            if len(ahead) > AHEAD * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:  # runs, too, where the reader stops before the last batch
        pool.shutdown(wait=True, cancel_futures=True)
