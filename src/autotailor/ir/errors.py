"""Errors of autotailor: each message names the object, what was expected, and the remedy. What they quote of others."""


class AutoTailorError(Exception):
    """Base of every error that autotailor raises on purpose."""


class GraphError(AutoTailorError):
    """A computation graph cannot be read or is not what the IR expects."""


class SpaceError(AutoTailorError):
    """A search space asks for something that the network cannot offer."""


class IllegalSubNetError(AutoTailorError):
    """An assignment of variables does not describe a network."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's type where the message is empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
