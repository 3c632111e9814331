"""Processes that open pictures, on systems whose processes start afresh (macOS, Windows, Python 3.14's forkserver).

Such a process imports the main script again. A script that loads data at its top level, as Snakemake's do, would run
a second time inside each worker. What the workers need lies in modules, so the main script is kept from them.
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_ABSENT = object()


@contextmanager
def starting(items: object) -> Iterator[None]:
    """Worker processes started within the block do not run the main script again.

    Args:
        items: what is sent to the workers; where something in it is defined in the main script, that is imported.
    """
    if multiprocessing.get_start_method() == "fork" or b"__main__" in pickle.dumps(items):
        yield
        return
    main = sys.modules["__main__"]
    with _LOCK:
        kept = {name: getattr(main, name, _ABSENT) for name in ("__spec__", "__file__")}
        main.__spec__, main.__file__ = None, None
        try:
            yield
        finally:
            for name, value in kept.items():
                if value is _ABSENT:
                    delattr(main, name)
                else:
                    setattr(main, name, value)
