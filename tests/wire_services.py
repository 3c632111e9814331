"""A server elsewhere for tests of the relay: it says what it was asked, and can be slow."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from autotailor.serving.wire import Address, Client
from autotailor.serving.wire.frames import REPLY, Frame, Kind, error_frame, receive


class Recorder:
    """Answers a picture with its first numbers, doubled; holds what it was asked, in order."""

    most_bytes = 4096

    def __init__(self, listening: socket.socket, address: Address) -> None:
        self.listening, self.address = listening, address
        self.pictures: list[float] = []
        self.settings: dict[str, float] = {"deadline_ms": 5.0}
        self.reloads, self.is_stopped = 0, False
        self.may_go = threading.Event()
        self.may_go.set()
        self.running = 0
        self.connections: list[socket.socket] = []

    def connect(self) -> Client:
        """A client of this server."""
        return Client("there", connection=self.address.connect(5.0))

    def run(self) -> None:
        with suppress(OSError):  # the socket is closed in the end
            while True:
                connection, _ = self.listening.accept()
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while (frame := receive(connection, 1 << 20, 10.0)) is not None:
                connection.sendall(self._answer(frame).pack())

    def _answer(self, frame: Frame) -> Frame:
        if frame.kind == Kind.INFER:
            return self._inferred(frame)
        if frame.kind == Kind.SET:
            self.settings |= json.loads(frame.body)
            return Frame(frame.kind + REPLY, frame.id, json.dumps(self.settings).encode())
        if frame.kind == Kind.METRICS:
            return Frame(frame.kind + REPLY, frame.id, f"pictures {len(self.pictures)}\n".encode())
        if frame.kind in (Kind.STATUS, Kind.RELOAD) and not frame.body:
            self.reloads += frame.kind == Kind.RELOAD
            return Frame(frame.kind + REPLY, frame.id, json.dumps({"pictures": self.pictures}).encode())
        self.is_stopped = self.is_stopped or frame.kind == Kind.STOP
        return error_frame(frame.id, f"a request of kind {frame.kind} is refused there")

    def _inferred(self, frame: Frame) -> Frame:
        self.running += 1
        assert self.running == 1, "two requests run at once"
        self.may_go.wait(10)
        numbers = np.frombuffer(frame.body, "<f4", offset=12)
        self.pictures.append(float(numbers[0]))
        self.running -= 1
        if numbers[0] < 0:
            return error_frame(frame.id, "a negative picture")
        outputs = (2 * numbers[:4]).astype("<f4")
        return Frame(
            frame.kind + REPLY, frame.id, struct.pack("<HHffI", 3, 4, 1.5, 1.25, len(outputs)) + outputs.tobytes()
        )


@contextmanager
def recorded() -> Iterator[Recorder]:
    """The server, on a port, in threads."""
    listening, address = Address().listen()
    recorder = Recorder(listening, address)
    threading.Thread(target=recorder.run, daemon=True).start()
    try:
        yield recorder
    finally:
        for each in (listening, *recorder.connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def picture(value: float, shape: tuple[int, ...] = (1, 2, 2)) -> np.ndarray:
    return np.full(shape, value, dtype=np.float32)
