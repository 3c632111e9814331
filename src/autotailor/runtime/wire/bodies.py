"""What frames carry: a picture and its answer as numbers, settings as JSON."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.runtime.errors import PoolError
from autotailor.runtime.wire.frames import SPARE_BYTES

Picture = npt.NDArray[np.float32]

REQUEST = struct.Struct("<fHHHH")
REPLY = struct.Struct("<HHffI")
FLOAT = np.dtype("<f4")


class Flag(IntFlag):
    """What an answer says of its inference."""

    SWITCHED = 1
    NOTHING_FITS = 2
    LATE = 4


@dataclass(frozen=True, eq=False)
class Request:
    """A picture ``[C, H, W]``, normalised, and its deadline; 0 means the server's."""

    picture: Picture
    deadline_ms: float = 0.0

    def pack(self) -> bytes:
        """The body of a frame.

        Raises:
            PoolError: the picture has no three dimensions that fit into 16 bits, or the deadline is no time.
        """
        shape = self.picture.shape
        if len(shape) != 3 or not all(0 < size < 1 << 16 for size in shape):
            raise PoolError(f"a picture has the shape [C, H, W], each from 1 to 65535, not {list(shape)}")
        check_deadline(self.deadline_ms)
        return REQUEST.pack(self.deadline_ms, *shape, 0) + np.ascontiguousarray(self.picture, dtype=FLOAT).tobytes()

    @classmethod
    def unpack(cls, body: bytes) -> Request:
        """The request of a body.

        Raises:
            PoolError: the body is no request.
        """
        if len(body) < REQUEST.size:
            raise PoolError(f"infer: the body has {len(body)} bytes, expected at least {REQUEST.size}")
        deadline, *shape, spare = REQUEST.unpack_from(body)
        count = math.prod(shape)
        if not count or spare or len(body) != REQUEST.size + count * FLOAT.itemsize:
            raise PoolError(
                f"infer: a picture of {'x'.join(map(str, shape))} takes {count * FLOAT.itemsize} bytes behind a zero, "
                f"and {len(body) - REQUEST.size} came"
            )
        check_deadline(deadline)
        picture = np.frombuffer(body, dtype=FLOAT, offset=REQUEST.size).reshape(shape)
        return cls(picture.astype(np.float32, copy=False), deadline)


def most_request_bytes(largest_input: tuple[int, int, int]) -> int:
    """Bytes that the body of a request may have: the largest picture, and some to spare."""
    return math.prod(largest_input) * FLOAT.itemsize + REQUEST.size + SPARE_BYTES


def check_deadline(deadline_ms: float) -> None:
    """Raises ``PoolError`` unless a deadline is a time; 0 means the server's."""
    if not 0 <= deadline_ms < math.inf:
        raise PoolError(f"infer: the deadline is {deadline_ms} ms, expected a positive time, or 0 for the server's")


@dataclass(frozen=True, eq=False)
class Reply:
    """The answer to a picture.

    Attributes:
        member: number of the member that ran, in the order of the pool.
        flags: what the answer says of the inference.
        latency_ms: wall time of the inference, from its turn to its outputs.
        cpu_ms: CPU time of the inference.
        outputs: of the network, ``[N]``.
    """

    member: int
    flags: Flag
    latency_ms: float
    cpu_ms: float
    outputs: Picture

    def pack(self) -> bytes:
        """The body of a frame."""
        head = REPLY.pack(self.member, int(self.flags), self.latency_ms, self.cpu_ms, self.outputs.size)
        return head + np.ascontiguousarray(self.outputs, dtype=FLOAT).tobytes()

    @classmethod
    def unpack(cls, body: bytes) -> Reply:
        """The answer of a body.

        Raises:
            PoolError: the body is no answer.
        """
        if len(body) < REPLY.size:
            raise PoolError(f"the server answered {len(body)} bytes, expected at least {REPLY.size}")
        member, flags, latency, cpu, count = REPLY.unpack_from(body)
        if len(body) != REPLY.size + count * FLOAT.itemsize:
            raise PoolError(f"the server announced {count} outputs, and {len(body) - REPLY.size} bytes came")
        outputs = np.frombuffer(body, dtype=FLOAT, offset=REPLY.size).astype(np.float32, copy=False)
        return cls(member, Flag(flags), latency, cpu, outputs)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; NaN and infinity are no JSON.

    Raises:
        PoolError: the body is no JSON object.
    """
    try:
        content = json.loads(body.decode(), parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise PoolError(f"expected a JSON object in UTF-8: {error}") from error
    if not isinstance(content, dict):
        raise PoolError(f"expected a JSON object, not {type(content).__name__}")
    return content


def json_body(content: Mapping[str, Any]) -> bytes:
    """A JSON object as the body of a frame."""
    return json.dumps(content, allow_nan=False).encode()


def settings_body(settings: Mapping[str, Any]) -> bytes:
    """Settings as the body of a frame; raises PoolError where they are neither finite numbers, names nor None."""
    try:
        return json_body(settings)
    except (ValueError, TypeError) as error:
        raise PoolError(f"set: {settings} cannot be sent ({error}); give finite numbers, names or None") from error


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
