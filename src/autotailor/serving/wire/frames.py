"""Frames of the wire protocol: a header of 20 bytes and a body, little-endian.

    u32 magic "POOL", u16 version, u16 kind, u64 id, u32 length, then ``length`` bytes

The client chooses the id, and the reply repeats the id. A reply's kind is that of its request plus 128; an error has
the kind 255 and text in UTF-8. Where a header is no header, or announces more than the limit, nobody knows where the
next frame begins: the server answers with an error and ends the connection.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from autotailor.serving.errors import PoolError

MAGIC = 0x4C4F4F50
VERSION = 1
HEADER = struct.Struct("<IHHQI")
SPARE_BYTES = 64 * 1024
"""What a frame may have beside the largest picture; JSON of settings and errors fits into it."""
REPLY = 128
MOST_ERROR_BYTES = 4096


class Kind(IntEnum):
    """What a request asks for, and the kind of an error."""

    INFER = 1
    STATUS = 2
    METRICS = 3
    SET = 4
    STOP = 5
    RELOAD = 6
    OPEN = 7
    INFER_EXITS = 8
    ERROR = 255


class Connection(Protocol):
    """What frames travel through: a socket, or what does and raises the same."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Sets for how long the other methods wait before they raise TimeoutError."""

    def sendall(self, data: bytes, /) -> None:
        """Sends all of the data; raises OSError."""

    def recv(self, most: int, /) -> bytes:
        """At least one byte; none where the other side has ended the connection; raises OSError."""

    def close(self) -> None:
        """Ends the connection."""


class FramingError(PoolError):
    """What came is no frame, so that nothing behind it can be read; the connection ends."""


class TooLongError(FramingError):
    """A frame announces a body that is longer than the receiver takes."""


@dataclass(frozen=True)
class Frame:
    """One message: its kind (of a request, a reply or ``Kind.ERROR``), its id, and its body."""

    kind: int
    id: int
    body: bytes = b""

    def pack(self) -> bytes:
        """The frame's bytes."""
        return HEADER.pack(MAGIC, VERSION, self.kind, self.id, len(self.body)) + self.body


def error_frame(number: int, message: str) -> Frame:
    """The answer to a request that failed; a long message is cut."""
    return Frame(Kind.ERROR, number, message.encode()[:MOST_ERROR_BYTES].decode(errors="ignore").encode())


def receive(
    connection: Connection, most: int, patience_s: float | None = None, wait_s: float | None = None
) -> Frame | None:
    """The next frame; None where the other side has ended the connection between two frames.

    Args:
        connection: of either side.
        most: bytes that a body may have.
        patience_s: seconds that may pass without a byte once a frame has begun; None waits for ever.
        wait_s: seconds until a frame begins.

    Raises:
        FramingError: what came is no frame, or ended within.
        TooLongError: the body of the frame is longer than ``most``.
        TimeoutError: a time has passed.
    """
    connection.settimeout(wait_s)
    first = connection.recv(1)
    if not first:
        return None
    connection.settimeout(patience_s)
    magic, version, kind, number, length = HEADER.unpack(first + _exactly(connection, HEADER.size - 1))
    if magic != MAGIC:
        raise FramingError(f"a frame begins with {magic:#010x}, expected {MAGIC:#010x}: this is another protocol")
    if version != VERSION:
        raise FramingError(f"a frame has version {version}, expected {VERSION}: update the older of the two sides")
    if length > most:
        raise TooLongError(f"a frame announces {length} bytes, and at most {most} are accepted")
    return Frame(kind, number, _exactly(connection, length))


def _exactly(connection: Connection, count: int) -> bytes:
    """The next ``count`` bytes; memory grows with what has come, not with what was announced."""
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise FramingError(f"the connection ended {count - len(parts)} bytes before the end of a frame")
        parts += part
    return bytes(parts)
