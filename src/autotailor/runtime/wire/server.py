"""The server of the wire protocol: it reads frames, asks its service, and answers.

The service is one tenant's: requests of several clients take turns in the order of their coming. A request that fails
is answered with an error, and the connection stays open; where the framing is broken, the connection ends. A client
that stops in the middle of a frame, or does not take its answer, loses its connection after a while, and keeps nobody
waiting. Nothing of a frame is unpickled, and nothing names a file.
"""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from autotailor.runtime.errors import PoolError
from autotailor.runtime.wire.address import Address
from autotailor.runtime.wire.bodies import Reply, Request, json_body, json_object
from autotailor.runtime.wire.frames import REPLY, Frame, FramingError, Kind, TooLongError, error_frame, receive
from autotailor.runtime.wire.turns import Turns

logger = logging.getLogger(__name__)

MOST_CLIENTS = 8
PATIENCE_S = 30.0
"""Seconds that a client may pause within a frame, or leave an answer untaken."""
TOO_LARGE = ": resize pictures to the largest member's input before they are sent, and connect again"
WAKE_S = 0.2
PASSING = (errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPERM, errno.EPROTO)
"""Why a client cannot be accepted now, though the next one or a later moment may be better (man 2 accept)."""
FAREWELL_S = 1.0


class Backend(Protocol):
    """What a server asks; the server calls one method at a time."""

    @property
    def most_bytes(self) -> int:
        """Bytes that the body of a request may have."""

    def infer(self, request: Request) -> Reply:
        """Runs the active member on a picture."""

    def status(self) -> Mapping[str, Any]:
        """What runs, as a JSON object."""

    def metrics(self) -> str:
        """Counters and gauges in Prometheus' text format."""

    def set(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Changes settings; returns all of them."""

    def successor(self) -> Callable[[], Backend]:
        """Opens the pool anew, while other requests are answered; what it returns is called between two of them.

        That gives the backend that takes this one's place.
        """

    def close(self) -> None:
        """Ends; called of a successor when it has one itself, or when the server closes."""


class Server:
    """A listening server; a context manager that ends with all connections closed.

    Attributes:
        address: where the server listens.
        stopped: set once a client has asked the server to stop, or ``stop`` was called.
    """

    def __init__(self, service: Backend, address: Address) -> None:
        """Listens.

        Raises:
            PoolError: the address cannot be used.
        """
        self.service = service
        self._listening, self.address = address.listen()
        self._listening.settimeout(WAKE_S)
        self.stopped = threading.Event()
        self._turns = Turns()
        self._reloading = threading.Lock()
        self._is_mine = False  # whether the service is a successor, which this server closes
        self._guard = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> None:
        """Serves until ``stopped``."""
        while not self.stopped.is_set():
            try:
                connection, _ = self._listening.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if self.stopped.is_set():  # ``close`` ends the waiting
                    return
                if error.errno not in PASSING:
                    raise
                logger.warning("a client cannot be accepted (%s); it waits", error.strerror)
                self.stopped.wait(WAKE_S)
                continue
            self._welcome(connection)

    def start(self) -> threading.Thread:
        """Serves in a thread."""
        thread = threading.Thread(target=self.run, name="pool server", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Makes ``run`` return."""
        self.stopped.set()

    def close(self) -> None:
        """Stops, and closes all connections; safe to call twice."""
        self.stop()
        if self._listening.fileno() >= 0:  # a socket that is closed no longer knows its file
            self.address.release()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._guard:
            clients = dict(self._clients)
        for connection in clients:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in clients.values():
            thread.join(timeout=5.0)
        if self._is_mine:
            self.service.close()

    def _welcome(self, connection: socket.socket) -> None:
        """Starts the thread of a client, unless there are too many."""
        with self._guard:
            if len(self._clients) >= MOST_CLIENTS:
                refusal = f"the server has {MOST_CLIENTS} clients, and takes no more; end another connection"
                with connection, suppress(OSError):
                    connection.settimeout(WAKE_S)
                    connection.sendall(error_frame(0, refusal).pack())
                return
            if not self.address.is_unix:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), name="pool client", daemon=True)
            self._clients[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """Answers one client until one of both sides ends the connection."""
        try:
            while (frame := receive(connection, self.service.most_bytes, PATIENCE_S)) is not None:
                connection.settimeout(PATIENCE_S)
                connection.sendall(self._answer(frame).pack())
                if frame.kind == Kind.STOP and self.address.is_unix and not frame.body:
                    self.stop()
        except FramingError as error:
            logger.warning("a client's connection ends: %s", error)
            with suppress(OSError):
                _farewell(connection, f"{error}{TOO_LARGE if isinstance(error, TooLongError) else ''}")
        except OSError as error:
            logger.info("a client has gone: %s", error)
        finally:
            with self._guard:
                self._clients.pop(connection, None)
            connection.close()

    def _answer(self, frame: Frame) -> Frame:
        """The answer to a frame; an error where the request fails."""
        try:
            return Frame(frame.kind + REPLY, frame.id, self._body(frame))
        except PoolError as error:
            return error_frame(frame.id, str(error))
        except Exception:
            logger.exception("a request of kind %d failed", frame.kind)
            return error_frame(frame.id, "the server failed on this request; its log says where")

    def _body(self, frame: Frame) -> bytes:
        """What answers a frame.

        Raises:
            PoolError: the request is invalid, or it failed.
        """
        if frame.kind == Kind.INFER:
            request = Request.unpack(frame.body)
            with self._turns:
                return self.service.infer(request).pack()
        if frame.kind == Kind.SET:
            content = json_object(frame.body)
            with self._turns:
                return json_body(self.service.set(content))
        if frame.body:
            raise PoolError(f"a request of kind {frame.kind} has no body, and {len(frame.body)} bytes came")
        if frame.kind == Kind.STATUS:
            with self._turns:
                return json_body(self.service.status())
        if frame.kind == Kind.METRICS:
            with self._turns:
                return self.service.metrics().encode()
        if frame.kind == Kind.RELOAD:
            return json_body(self._reload())
        if frame.kind == Kind.STOP:
            if not self.address.is_unix:
                raise PoolError("stop: only a client of a Unix socket can stop the server; end its process instead")
            return b""
        raise PoolError(f"a request of kind {frame.kind} is unknown; kinds go from {Kind.INFER} to {Kind.RELOAD}")

    def _reload(self) -> Mapping[str, Any]:
        """Lets a successor take the service's place between two requests; returns the successor's status.

        Raises:
            PoolError: the pool cannot be opened, does not fit its clients, or is being opened already.
        """
        if not self._reloading.acquire(blocking=False):
            raise PoolError("reload: the pool is being opened already; wait until that is done")
        try:
            before = self.service
            take_over = before.successor()
            with self._turns:
                self.service = after = take_over()
                status = after.status()
            if self._is_mine and after is not before:
                before.close()
            self._is_mine = self._is_mine or after is not before
            return status
        finally:
            self._reloading.release()


def _farewell(connection: socket.socket, message: str) -> None:
    """Sends a last error.

    What the client still sends is taken for a while: a socket that is closed with bytes unread may lose the error.
    """
    connection.settimeout(FAREWELL_S)
    connection.sendall(error_frame(0, message).pack())
    connection.shutdown(socket.SHUT_WR)
    end = time.monotonic() + FAREWELL_S
    while time.monotonic() < end and connection.recv(1 << 16):
        pass
