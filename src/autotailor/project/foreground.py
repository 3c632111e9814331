"""Runs another program in the place of this one: its exit code and the user's Ctrl-C are its own."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, pass_fds: Sequence[int] = ()) -> int:
    """Runs a program to its end.

    A terminal sends Ctrl-C to this process and to the program. This process only waits then, so that the program can
    end in order. Batch systems and containers send SIGTERM to this process alone, which hands it on.

    Args:
        command: the program and its arguments.
        env: environment of the program; None leaves it as it is.
        pass_fds: file descriptors that the program inherits.

    Returns:
        The exit code of the program; 128 and the number of the signal where a signal has ended it.
    """
    with subprocess.Popen(command, env=env, pass_fds=pass_fds) as program:

        def hand_on(number: int, frame: FrameType | None) -> None:
            program.send_signal(number)

        def wait_on(number: int, frame: FrameType | None) -> None:
            """Does nothing: the terminal has told the program as well."""

        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        signal.signal(signal.SIGTERM, hand_on)
        if before[signal.SIGINT] is not signal.SIG_IGN:  # a shell ignores it for what runs in the background
            signal.signal(signal.SIGINT, wait_on)
        try:
            code = program.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return code if code >= 0 else 128 - code
