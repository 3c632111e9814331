"""The relay: it listens on this computer, and hands requests on to a server elsewhere, whose connection may break.

Requests of several clients take turns in the order of their coming. Frames are handed on as they are: what they ask for
is checked by the server. Only ``stop`` ends here, and ``reload`` brings the server's files up to date first. A request
whose connection breaks is answered with an error, because nobody knows whether it was served; the next one makes a new
connection. Where the framing of a client is broken, its connection ends. A client that stops in the middle of a frame,
or does not take its answer, loses its connection after a while, and keeps nobody waiting. Where the last place is
taken, the client that has asked nothing for longest gives its own. Over TCP any user can connect, and may only ask.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from autotailor.ir.errors import AutoTailorError
from autotailor.logs import Sparing
from autotailor.serving.errors import PoolError, ServerLostError
from autotailor.serving.wire.address import Address
from autotailor.serving.wire.client import Client
from autotailor.serving.wire.frames import REPLY, Frame, FramingError, Kind, TooLongError, error_frame, receive

logger = logging.getLogger(__name__)
logger.addFilter(Sparing())

MOST_CLIENTS = 8
PATIENCE_S = 30.0
"""Seconds that a client may pause within a frame, or leave an answer untaken."""
TOO_LARGE = ": resize pictures to the largest member's input before they are sent, and connect again"
WAKE_S = 0.2
PASSING = (errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPERM, errno.EPROTO)
"""Why a client cannot be accepted now, though the next one or a later moment may be better (man 2 accept)."""
FAREWELL_S = 1.0


class Relay:
    """Listens; a context manager that ends with all connections closed.

    Attributes:
        address: where it listens.
        stopped: set once a client has asked it to stop, or ``stop`` was called.
        most_bytes: that the body of a request may have.
    """

    def __init__(
        self,
        address: Address,
        connect: Callable[[], Client],
        most_bytes: int,
        renew: Callable[[], int] | None = None,
    ) -> None:
        """Listens.

        Args:
            address: where to.
            connect: makes a client of the server; an ``AutoTailorError`` of it becomes that of the request.
            most_bytes: that the body of a request may have.
            renew: brings what the server opens anew up to date before the server is told; returns the new
                ``most_bytes``.

        Raises:
            PoolError: the address cannot be used.
        """
        self._connect, self._renew, self.most_bytes = connect, renew, most_bytes
        self._far: Client | None = None
        self._listening, self.address = address.listen()
        self._listening.settimeout(WAKE_S)
        self.stopped = threading.Event()
        self._passed, self._coming, self._now = threading.Condition(), 0, 0
        self._guard = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._last_request: dict[socket.socket, float] = {}  # when each client asked last; infinite while it waits

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> threading.Thread:
        """Serves in a thread until ``stopped``."""
        thread = threading.Thread(target=self._run, name="pool relay", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Ends the thread that serves."""
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
        self._part()

    def status(self) -> dict[str, Any]:
        """What the server runs; raises PoolError where it does not answer."""
        return dict(json.loads(self._ask(Kind.STATUS, b"")))

    def _run(self) -> None:
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

    def _welcome(self, connection: socket.socket) -> None:
        """Starts the thread of a client, unless there are too many."""
        with self._guard:
            if len(self._clients) >= MOST_CLIENTS and not self._make_room():
                refusal = f"the server has {MOST_CLIENTS} clients, and takes no more; end another connection"
                with connection, suppress(OSError):
                    connection.settimeout(WAKE_S)
                    connection.sendall(error_frame(0, refusal).pack())
                return
            if not self.address.is_unix:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), name="pool client", daemon=True)
            self._clients[connection], self._last_request[connection] = thread, time.monotonic()
            thread.start()

    def _make_room(self) -> bool:
        """Ends the connection of the client that has asked nothing for longest, where that is long enough."""
        silent = min(self._last_request, key=self._last_request.__getitem__)
        if time.monotonic() - self._last_request[silent] <= PATIENCE_S:
            return False
        with suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)
        del self._clients[silent], self._last_request[silent]
        return True

    def _serve(self, connection: socket.socket) -> None:
        """Answers one client until one of both sides ends the connection."""
        try:
            while (frame := receive(connection, self.most_bytes, PATIENCE_S)) is not None:
                connection.settimeout(PATIENCE_S)
                self._note(connection, math.inf)
                answer = self._answer(frame)
                connection.sendall(answer.pack())
                self._note(connection, time.monotonic())
                if answer.kind == Kind.STOP + REPLY:
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
                self._last_request.pop(connection, None)
            connection.close()

    def _note(self, connection: socket.socket, moment: float) -> None:
        with self._guard:
            if connection in self._last_request:
                self._last_request[connection] = moment

    def _answer(self, frame: Frame) -> Frame:
        """The answer to a frame; an error where the request fails."""
        try:
            if frame.kind == Kind.STOP:
                self._check_stop(frame)
                return Frame(Kind.STOP + REPLY, frame.id)
            if frame.kind in (Kind.SET, Kind.RELOAD) and not self.address.is_unix:
                raise PoolError(
                    f"{Kind(frame.kind).name.lower()}: over TCP any user of this computer can connect, and may only "
                    f"ask; serve on a Unix socket to change the server"
                )
            return Frame(frame.kind + REPLY, frame.id, self._ask(frame.kind, frame.body))
        except PoolError as error:
            return error_frame(frame.id, str(error))
        except Exception:
            logger.exception("a request of kind %d failed", frame.kind)
            return error_frame(frame.id, "the server failed on this request; its log says where")

    def _check_stop(self, frame: Frame) -> None:
        if frame.body:
            raise PoolError(f"a request of kind {frame.kind} has no body, and {len(frame.body)} bytes came")
        if not self.address.is_unix:
            raise PoolError("stop: only a client of a Unix socket can stop the server; end its process instead")

    def _ask(self, kind: int, body: bytes) -> bytes:
        """What the server answers, in turn."""
        with self._turn():
            try:
                if kind == Kind.RELOAD and not body and self._renew is not None:
                    return self._reloaded(self._renew)
                return self._client().forward(kind, body)
            except ServerLostError:
                self._part()
                raise
            except PoolError:
                raise
            except AutoTailorError as error:
                raise ServerLostError(str(error)) from error

    def _reloaded(self, renew: Callable[[], int]) -> bytes:
        """The server's status after it has opened new files.

        The way to the server may have broken and come back while files were sent, which the old connection does not
        survive. So the server is told through a new one.
        """
        most_bytes = renew()
        self._part()
        status = self._client().forward(Kind.RELOAD)
        self.most_bytes = most_bytes
        return status

    def _client(self) -> Client:
        if self._far is None:
            self._far = self._connect()
        return self._far

    def _part(self) -> None:
        """Ends the connection to the server."""
        if self._far is not None:
            self._far.close()
            self._far = None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Who comes first passes first; a lock would let the thread through that wakes up first."""
        with self._passed:
            mine, self._coming = self._coming, self._coming + 1
            self._passed.wait_for(lambda: self._now == mine)
        try:
            yield
        finally:
            with self._passed:
                self._now += 1
                self._passed.notify_all()


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
