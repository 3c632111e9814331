"""Bytes that a command prints, as lines; what a device sends without end fills no memory."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 2**22
"""Bytes of a line: ten times what the runner says of a network of two thousand operators. The rest is dropped."""


class LineSplitter:
    """Takes bytes as they come, hands out the lines that are whole."""

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
        """What was printed behind the last line feed, if anything was."""
        if self._begun:
            yield self._take()

    def _add(self, part: bytes) -> None:
        self._begun += part[: LONGEST - len(self._begun)]

    def _take(self) -> str:
        line = self._begun.decode(errors="replace").rstrip("\r")
        self._begun.clear()
        return line
