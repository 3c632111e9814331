"""Tells programs that were stopped from outside from programs that fail over what they were given."""

import signal

from autotailor.profiling.errors import ProfilingError


class StoppedError(ProfilingError):
    """A conversion was stopped from outside, which says nothing of the network or operator."""


def check_stopped(program: str, code: int) -> None:
    """Raises StoppedError for the exit code of a program that a user, a scheduler or exhausted memory has ended."""
    if -code in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        raise StoppedError(
            f"{program} was ended by the signal {signal.Signals(-code).name}: run again, and with more memory where "
            "that happens again"
        )
