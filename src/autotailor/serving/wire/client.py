"""The client of a pool's server.

with Client("pool.sock") as client:
    answer = client.infer(picture, deadline_ms=5.0)
    print(answer.outputs.argmax(), answer.latency_ms, answer.member)
"""

from __future__ import annotations

import itertools
import json
import time
from contextlib import suppress
from typing import Any

import numpy as np

from autotailor.serving.errors import PoolError, ServerLostError
from autotailor.serving.margin import Margin
from autotailor.serving.wire.address import Address
from autotailor.serving.wire.bodies import Picture, Reply, Request, settings_body
from autotailor.serving.wire.frames import REPLY, Connection, Frame, FramingError, Kind, receive

MOST_ANSWER_BYTES = 64 * 1024 * 1024
TIMEOUT_S = 60.0
RELOAD_S = 600.0
"""Seconds to wait until a server has opened its pool anew: large files are read, and perhaps sent to a device."""


class Client:
    """A connection to a server; use one for each thread.

    A failed request raises ``PoolError`` with the server's words, and the connection stays usable, unless the picture
    was larger than the largest member's input: then the server ends the connection.
    """

    def __init__(
        self, address: str | Address, timeout_s: float = TIMEOUT_S, connection: Connection | None = None
    ) -> None:
        """Connects.

        Args:
            address: ``unix:PATH``, ``tcp:PORT`` or a path.
            timeout_s: seconds to wait for an answer.
            connection: to the server, made already; the client closes it, and the address only names the server.

        Raises:
            PoolError: the address is none, or no server answers there.
        """
        self._timeout_s = timeout_s
        self._numbers, self._margin = itertools.count(1), Margin()
        if connection is None:
            address = address if isinstance(address, Address) else Address.parse(address)
            connection = address.connect(timeout_s)
        self.address = address
        self._connection = connection

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def ask(self, request: Request) -> Reply:
        """The answer to a request; raises as ``infer`` does."""
        return Reply.unpack(self.forward(Kind.INFER, request.pack()))

    def infer(self, picture: Picture, deadline_ms: float = 0.0) -> Reply:
        """Runs a picture ``[C, H, W]``, normalised, at the size of the input of one member.

        Args:
            picture: converted to float32.
            deadline_ms: of this request alone; 0 takes the server's.

        Raises:
            PoolError: the server refused the request, or the connection failed.
        """
        return self.ask(Request(np.asarray(picture, dtype=np.float32), deadline_ms))

    def infer_exits(self, picture: Picture, deadline_ms: float = 0.0) -> Reply:
        """``infer`` of a pool with exits: the reply also says which exit answered, and how sure it is.

        The deadline is counted from this call to its return.

        Raises:
            PoolError: as ``infer``; or the server is older than exits.
        """
        begin = time.perf_counter()
        request = Request(np.asarray(picture, dtype=np.float32), self._margin.left(deadline_ms))
        reply = Reply.unpack(self.forward(Kind.INFER_EXITS, request.pack()), has_exit=True)
        self._margin.took(1e3 * (time.perf_counter() - begin), reply.latency_ms)
        return reply

    def status(self) -> dict[str, Any]:
        """What runs: members, the active one, what the monitor knows, settings."""
        return dict(json.loads(self.forward(Kind.STATUS)))

    def metrics(self) -> str:
        """Counters and gauges in Prometheus' text format."""
        return self.forward(Kind.METRICS).decode()

    def set(self, **settings: float | str | None) -> dict[str, Any]:
        """Changes settings of the server.

        They are ``deadline_ms``, ``quantile``, ``rate``, ``battery``, ``pin``, ``quota`` and, of exits, ``thresholds``
        (the name of a budget, or ``guaranteed``).

        Returns:
            all settings.

        Raises:
            PoolError: a setting is unknown, or a value makes no sense; nothing has changed then.
        """
        return dict(json.loads(self.forward(Kind.SET, settings_body(settings))))

    def reload(self) -> dict[str, Any]:
        """Lets the server open its pool anew; returns the status afterwards.

        Requests are answered meanwhile. Numbers of members in later replies are those of the new pool.

        Raises:
            PoolError: the new pool cannot take the old one's place, which goes on; or the connection failed.
        """
        return dict(json.loads(self.forward(Kind.RELOAD)))

    def open(self, key: str) -> None:
        """Shows the key that a server of TCP has printed: from now on this client may also ``set`` and ``reload``."""
        self.forward(Kind.OPEN, key.encode())

    def stop(self) -> None:
        """Ends the server; over a Unix socket only."""
        self.forward(Kind.STOP)

    def forward(self, kind: int, body: bytes = b"") -> bytes:
        """The body of the answer to a request of any kind.

        Raises:
            PoolError: the server refused the request.
            ServerLostError: the connection failed, and nobody knows what becomes of the request.
        """
        timeout_s = max(RELOAD_S, self._timeout_s) if kind == Kind.RELOAD else self._timeout_s
        number = next(self._numbers)
        try:
            self._connection.settimeout(timeout_s)
            with suppress(BrokenPipeError, ConnectionResetError):  # the server refuses, and its answer says why
                self._connection.sendall(Frame(kind, number, body).pack())
            answer = self._answer(timeout_s)
        except TimeoutError as error:
            self.close()  # the answer may still come, and would be taken for that of the next request
            raise ServerLostError(f"{self.address}: no answer within {timeout_s} s") from error
        except OSError as error:
            raise ServerLostError(f"{self.address}: the connection failed ({error.strerror or error})") from error
        if answer.kind == Kind.ERROR:
            raise PoolError(answer.body.decode(errors="replace"))
        if (answer.kind, answer.id) != (kind + REPLY, number):
            raise ServerLostError(f"{self.address}: the answer {answer.kind} of request {answer.id} was not asked for")
        return answer.body

    def _answer(self, timeout_s: float) -> Frame:
        try:
            frame = receive(self._connection, MOST_ANSWER_BYTES, self._timeout_s, timeout_s)
        except FramingError as error:
            raise ServerLostError(f"{self.address}: {error}") from error
        if frame is None:
            raise ServerLostError(f"{self.address}: the server has ended the connection")
        return frame
