"""A pool on this computer, served by ``autotailor-serve``, which this process starts and ends."""

import ctypes
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from autotailor.commands.terminal import say
from autotailor.serving import library
from autotailor.serving.errors import PoolError
from autotailor.serving.wire import Address, Client

SAID = re.compile(r"serving .* with (\d+) members at (?:unix:.*|tcp:(\d+))\n")
ERROR, KEY = f"{library.SERVER}: ", "key "
PR_SET_PDEATHSIG = 1


def serve(folder: Path, address: Address, options: Sequence[str]) -> None:
    """Serves a pool until a client stops it, or until SIGINT or SIGTERM.

    Args:
        folder: of the pool.
        address: where to listen.
        options: further ones of ``autotailor-serve``.

    Raises:
        PoolError: the server was not built, or it has ended with this error.
    """
    where = ["--tcp", str(address.port)] if address.path is None else ["--socket", str(address.path)]
    command = [str(library.built(library.SERVER)), str(folder), *where, *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_end_with_parent
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[str] = []
    listening = threading.Thread(target=_hand_on, args=(process.stderr, errors), daemon=True)
    listening.start()
    with _ended_by_signals(process):
        line = process.stdout.readline()
        if line.startswith(KEY):  # of a port; users of this command change the server through a Unix socket
            line = process.stdout.readline()
        if said := SAID.fullmatch(line):
            _announce(folder, int(said[1]), address if said[2] is None else Address(port=int(said[2])))
        process.stdout.read()  # the last status
        code = process.wait()
    listening.join()
    if code not in (0, -signal.SIGINT, -signal.SIGTERM):  # a signal ends it as well while it loads
        raise PoolError(errors[-1] if errors else f"{library.SERVER} has ended with exit code {code}; start it again")
    say("stopped")


@contextmanager
def _ended_by_signals(process: subprocess.Popen[str]) -> Iterator[None]:
    """SIGINT and SIGTERM end the server, and thereby this process."""
    before = {each: signal.signal(each, lambda *_: process.terminate()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        process.terminate()
        for each, handler in before.items():
            signal.signal(each, handler)


def _announce(folder: Path, count: int, address: Address) -> None:
    with Client(address) as client:
        deadline = client.status()["settings"]["deadline_ms"]
    say(f"serving {count} members of {folder} at {address}; deadline {deadline:.3g} ms")


def _hand_on(stream: IO[str], errors: list[str]) -> None:
    """Prints what the server complains of; why it ends is kept."""
    for line in stream:
        if line.startswith(ERROR):
            errors.append(line.removeprefix(ERROR).rstrip("\n"))
        else:
            say(line, end="", file=sys.stderr)


def _end_with_parent() -> None:
    """Lets the server, in which this runs, end with the process that started it, also where that is killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
