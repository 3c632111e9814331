"""Work in background threads. The program can end even while such work hangs, on a name server for instance."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_thread(action: Callable[[], Result]) -> Future[Result]:
    """Runs an action in a thread that dies with the program."""
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
    """Threads that do not delay the program's end. An event loop's default threads would."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return in_thread(partial(fn, *args, **kwargs))


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """The program's one event loop, which runs in a background thread."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(DaemonThreads())
    threading.Thread(target=loop.run_forever, daemon=True, name="autotailor-transports").start()
    return loop
