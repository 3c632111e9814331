"""Splits bytes that a command prints into lines of limited length, so that endless output does not fill the memory."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 2**22
"""Bytes of a line that are kept; the rest is dropped.

The limit is ten times the line that the runner prints for a network of two thousand operators.
"""


class LineSplitter:
    """Takes bytes as they come, and hands out each line once it is complete."""

    def __init__(self) -> None:
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[str]:
        """Lines that end in these bytes, each cut after `LONGEST` bytes."""
        *ended, begun = data.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._take()
        self._add(begun)

    def rest(self) -> Iterator[str]:
        """The text behind the last line feed, if there is any."""
        if self._begun:
            yield self._take()

    def _add(self, part: bytes) -> None:
        self._begun += part[: LONGEST - len(self._begun)]

    def _take(self) -> str:
        line = self._begun.decode(errors="replace").rstrip("\r")
        self._begun.clear()
        return line
