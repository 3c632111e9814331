"""Errors of autotailor: each message names the object, what was expected, and the remedy. What they quote of others."""

import re

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: object) -> str:
    r"""A text for a terminal, a log or a page; names in it may come from anybody.

    Characters that a terminal obeys (escapes), that turn the direction of writing, or that no file can hold appear as
    Python writes them (``\x1b``). Line breaks and tabs stay.
    """
    return _HIDDEN.sub(lambda match: ascii(match[0])[1:-1], str(text))


class AutoTailorError(Exception):
    """Base of every error that autotailor raises on purpose; its text is printable."""

    def __str__(self) -> str:
        return printable(super().__str__())


def printable_value(value: object) -> object:
    """A value of a template: texts become printable, markup and numbers stay (``finalize`` of Jinja)."""
    return printable(value) if type(value) is str else value


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
