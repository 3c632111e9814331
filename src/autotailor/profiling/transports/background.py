"""Work in the background that may hang (on a name server, say) without keeping this program from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_thread(action: Callable[[], Result]) -> Future[Result]:
    """Runs something in a thread that dies with the program."""
    future: Future[Result] = Future()

    def work() -> None:
        try:
            result = action()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, daemon=True).start()
    return future


class DaemonThreads(ThreadPoolExecutor):
    """Threads that are not waited for at the program's end, as a loop's own would be."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return in_thread(partial(fn, *args, **kwargs))


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """An event loop that runs in a thread of its own, one for the program."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(DaemonThreads())
    threading.Thread(target=loop.run_forever, daemon=True, name="autotailor-transports").start()
    return loop
