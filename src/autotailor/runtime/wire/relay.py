"""A backend that is a server elsewhere: requests are handed on through a connection that may break."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from autotailor.ir.errors import AutoTailorError
from autotailor.runtime.errors import PoolError, ServerLostError
from autotailor.runtime.wire.bodies import Reply, Request
from autotailor.runtime.wire.client import Client

Answer = TypeVar("Answer")


class Relay:
    """Hands requests on, one at a time.

    A request whose connection breaks is answered with an error, because nobody knows whether it was served. The next
    request makes a new connection.

    Args:
        connect: makes a client of the server; an ``AutoTailorError`` of it becomes that of the request.
        most_bytes: that the body of a request may have.
        renew: brings what the server opens anew up to date before the server is told; returns the new ``most_bytes``.
    """

    def __init__(self, connect: Callable[[], Client], most_bytes: int, renew: Callable[[], int] | None = None) -> None:
        self._connect, self._renew = connect, renew
        self.most_bytes = most_bytes
        self._client: Client | None = None
        self._turn = threading.Lock()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def infer(self, request: Request) -> Reply:
        """The answer of the server to a picture."""
        return self._ask(lambda client: client.ask(request))

    def status(self) -> Mapping[str, Any]:
        """What the server runs."""
        return self._ask(Client.status)

    def metrics(self) -> str:
        """The server's counters and gauges."""
        return self._ask(Client.metrics)

    def set(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Changes settings of the server; returns all of them."""
        return self._ask(lambda client: client.set(**content))

    def successor(self) -> Callable[[], Relay]:
        """This relay, once the server has opened its pool anew; requests wait while files are sent.

        The way to the server may have broken and come back while files were sent, which the old connection does not
        survive. So the server is told through a new one.
        """
        most_bytes = self._ask(lambda _: self._renewed())
        self._ask(Client.reload)
        self.most_bytes = most_bytes
        return lambda: self

    def _renewed(self) -> int:
        most_bytes = self._renew() if self._renew else self.most_bytes
        self.close()
        return most_bytes

    def _ask(self, request: Callable[[Client], Answer]) -> Answer:
        with self._turn:
            try:
                if self._client is None:
                    self._client = self._connect()
                return request(self._client)
            except ServerLostError:
                self.close()
                raise
            except PoolError:
                raise
            except AutoTailorError as error:
                raise ServerLostError(str(error)) from error
