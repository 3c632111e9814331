"""Work side by side in threads on the processor, and in turn on an accelerator.

The processor has a core for each thread. An accelerator runs what it gets in order: threads would only compete for
Python's interpreter and hold the activations of several networks in memory at once.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")


class InTurn(Executor):
    """Runs each function in the calling thread, where its error is raised, too."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Runs the function at once; the result is ready."""
        done: Future[Result] = Future()
        done.set_result(fn(*args, **kwargs))
        return done

    def map(
        self, fn: Callable[..., Result], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[Result]:
        """Runs the function for each item when its result is asked for; there is nothing to wait for or to divide."""
        return map(fn, *iterables)


def executor(workers: int, device: torch.device, name: str = "") -> Executor:
    """Threads for the processor, or the calling thread for an accelerator.

    Args:
        workers: number of threads.
        device: that computes.
        name: of the threads.
    """
    return ThreadPoolExecutor(workers, thread_name_prefix=name) if device.type == "cpu" else InTurn()
