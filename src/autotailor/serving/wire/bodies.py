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

from autotailor.serving.errors import PoolError
from autotailor.serving.wire.frames import SPARE_BYTES

Picture = npt.NDArray[np.float32]

REQUEST = struct.Struct("<fHHHH")
REPLY, REPLY_WITH_EXIT = struct.Struct("<HHffI"), struct.Struct("<HHffHHfI")
FLOAT = np.dtype("<f4")


class Flag(IntFlag):
    """What an answer says of its inference."""

    SWITCHED = 1
    NOTHING_FITS = 2
    LATE = 4
    EARLY = 8
    """An exit before the member's own answer answered."""


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
        if not 0 <= self.deadline_ms < math.inf:
            expected = "a positive time, or 0 for the server's"
            raise PoolError(f"infer: the deadline is {self.deadline_ms} ms, expected {expected}")
        return REQUEST.pack(self.deadline_ms, *shape, 0) + np.ascontiguousarray(self.picture, dtype=FLOAT).tobytes()


def most_request_bytes(largest_input: tuple[int, int, int]) -> int:
    """Bytes that the body of a request may have: the largest picture, and some to spare."""
    return math.prod(largest_input) * FLOAT.itemsize + REQUEST.size + SPARE_BYTES


@dataclass(frozen=True, eq=False)
class Reply:
    """The answer to a picture.

    Attributes:
        member: number of the member that ran, in the order of the pool.
        flags: what the answer says of the inference.
        latency_ms: wall time of the inference, from its turn to its outputs.
        cpu_ms: CPU time of the inference.
        outputs: of the network, or of its exit that answered, ``[N]``.
        exit: number of the exit that answered, 0 for the first; as many as the member has for its own answer.
        confidence: of the exit; NaN in a pool without exits.
    """

    member: int
    flags: Flag
    latency_ms: float
    cpu_ms: float
    outputs: Picture
    exit: int = 0
    confidence: float = math.nan

    @classmethod
    def unpack(cls, body: bytes, has_exit: bool = False) -> Reply:
        """The answer of a body, of ``Kind.INFER`` or, with the exit that answered, of ``Kind.INFER_EXITS``.

        Raises:
            PoolError: the body is no answer.
        """
        head = REPLY_WITH_EXIT if has_exit else REPLY
        if len(body) < head.size:
            raise PoolError(f"the server answered {len(body)} bytes, expected at least {head.size}")
        member, flags, latency, cpu, *further, count = head.unpack_from(body)
        if len(body) != head.size + count * FLOAT.itemsize:
            raise PoolError(f"the server announced {count} outputs, and {len(body) - head.size} bytes came")
        outputs = np.frombuffer(body, dtype=FLOAT, offset=head.size).astype(np.float32, copy=False)
        number, _, confidence = further or (0, 0, math.nan)
        return cls(member, Flag(flags), latency, cpu, outputs, number, confidence)


def answers_of(member: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a member's answers as a status has them, which ``Reply.exit`` counts: its exits, and ``last``."""
    return (*(str(each["name"]) for each in member.get("exits", ())), "last")


def settings_body(settings: Mapping[str, Any]) -> bytes:
    """Settings as the body of a frame; raises PoolError where they are neither finite numbers, names nor None."""
    try:
        return json.dumps(settings, allow_nan=False).encode()
    except (ValueError, TypeError) as error:
        raise PoolError(f"set: {settings} cannot be sent ({error}); give finite numbers, names or None") from error
