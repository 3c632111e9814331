"""An ADB daemon on the loopback interface: real commands in a scratch directory, misbehaving when told to."""

from __future__ import annotations

import itertools
import secrets
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from device.adb_faults import Faults
from device.adb_protocol import (
    MAX_DATA,
    OLD_MAX_DATA,
    OLD_VERSION,
    PUBLIC_KEY,
    SIGNATURE,
    TOKEN,
    VERSION,
    Message,
    is_signed,
    public_key,
    receive,
)
from device.adb_services import Phone, serve

BANNER = (
    b"device::ro.product.name=scratch;ro.product.model=Scratch 1;ro.product.device=scratch;features=shell_v2,stat_v2\0"
)
OLD_BANNER = b"device::\0"


class AdbDaemon:
    """A device: a listening socket, known keys, and a folder that stands for its file system.

    Args:
        root: the folder.
        authorise: whether clients need a key.
        prompt: seconds until the person at the device accepts an unknown key; None: never.
        machine: its processor, ``aarch64``, emulated; None: this computer's.
        port: to listen at; 0: a free one.
        old: as on a Linux board: version 1 of the protocol, messages of 4 kB, checksums, no ``exec:``, no features, and
            a terminal behind ``shell:``.
    """

    def __init__(
        self,
        root: Path,
        authorise: bool = True,
        prompt: float | None = 0.0,
        machine: str | None = None,
        port: int = 0,
        old: bool = False,
    ) -> None:
        self.faults = Faults()
        self.old = old
        self.phone = Phone(root, self.faults, machine, old)
        self.authorise, self.prompt = authorise, prompt
        self.keys: list[bytes] = []
        self.asked = 0
        self._connections: set[Connection] = set()
        self._port = port
        self._listener: socket.socket | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listens, again on the same port after a stop."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen()
        self._port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        """Closes everything; the processes on the device live on."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            connection.close()

    def reboot(self, seconds: float) -> None:
        """All processes die, nothing answers for some seconds; files stay."""
        self.stop()
        self.phone.kill()
        threading.Timer(seconds, self.start).start()

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def __enter__(self) -> AdbDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.phone.kill()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            if self.faults.strikes("refuse"):
                accepted.close()
                continue
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, accepted)
            self._connections.add(connection)
            threading.Thread(target=connection.run, daemon=True).start()


class Connection:
    """One client."""

    def __init__(self, daemon: AdbDaemon, connection: socket.socket) -> None:
        self.daemon = daemon
        self._socket = connection
        self._sending = threading.Lock()
        self._streams: dict[int, Stream] = {}
        self._ids = itertools.count(1)
        self._token = b""
        self._online = not daemon.authorise
        self._check = True
        self.max_data = OLD_MAX_DATA

    def run(self) -> None:
        try:
            while True:
                message = receive(self._socket, self._check, OLD_MAX_DATA if self.daemon.old else 2**20)
                if fault := self.daemon.faults.strikes("stall"):
                    time.sleep(fault.seconds)
                self._handle(message)
        except (OSError, ValueError):
            pass
        finally:
            self.close()
            for stream in list(self._streams.values()):
                stream.shut()
            self.daemon.forget(self)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def send(self, message: Message) -> None:
        packed = message.pack()
        faults = self.daemon.faults
        with self._sending:
            if message.command == b"WRTE":
                if faults.strikes("drop"):
                    self._socket.sendall(packed[: len(packed) // 2])
                    self.close()
                if faults.strikes("corrupt"):
                    packed = packed[:-1] + bytes([packed[-1] ^ 1])
            self._socket.sendall(packed)

    def _handle(self, message: Message) -> None:
        match message.command:
            case b"CNXN":
                self._check = self.daemon.old or message.arg0 < VERSION
                self.max_data = min(OLD_MAX_DATA if self.daemon.old else MAX_DATA, message.arg1)
                self._greet() if self._online else self._challenge()
            case b"AUTH":
                self._authorise(message)
            case _ if not self._online:
                raise ValueError("not authorised")
            case b"OPEN" if not self.daemon.phone.serves(message.data.rstrip(b"\0").decode()):
                self.send(Message(b"CLSE", 0, message.arg0))
            case b"OPEN":
                stream = Stream(self, next(self._ids), message.arg0)
                self._streams[stream.local] = stream
                name = message.data.rstrip(b"\0").decode()
                threading.Thread(target=self._serve, args=(stream, name), daemon=True).start()
            case b"WRTE" if message.arg1 in self._streams:
                self._streams[message.arg1].feed(message.data)
                self.send(Message(b"OKAY", message.arg1, message.arg0))
            case b"OKAY" if message.arg1 in self._streams:
                self._streams[message.arg1].acknowledged.release()
            case b"CLSE" if message.arg1 in self._streams:
                self._streams[message.arg1].close()

    def _serve(self, stream: Stream, name: str) -> None:
        with suppress(OSError, ValueError):
            self.send(Message(b"OKAY", stream.local, stream.remote))
            serve(self.daemon.phone, stream, name)
        with suppress(OSError):
            stream.close()

    def end(self, stream: Stream) -> None:
        if self._streams.pop(stream.local, None):
            self.send(Message(b"CLSE", stream.local, stream.remote))

    def _greet(self) -> None:
        self._online = True
        old = self.daemon.old
        banner = Message(b"CNXN", OLD_VERSION, OLD_MAX_DATA, OLD_BANNER) if old else None
        self.send(banner or Message(b"CNXN", VERSION, MAX_DATA, BANNER))

    def _challenge(self) -> None:
        self._token = secrets.token_bytes(20)
        self.send(Message(b"AUTH", TOKEN, 0, self._token))

    def _authorise(self, message: Message) -> None:
        if message.arg0 == SIGNATURE:
            known = any(is_signed(public_key(key), self._token, message.data) for key in self.daemon.keys)
            self._greet() if known else self._challenge()
        elif message.arg0 == PUBLIC_KEY:
            self.daemon.asked += 1
            if self.daemon.prompt is not None:
                time.sleep(self.daemon.prompt)
                self.daemon.keys.append(message.data)
                self._greet()


class Stream:
    """One service that a client has opened."""

    def __init__(self, connection: Connection, local: int, remote: int) -> None:
        self._connection = connection
        self.local, self.remote = local, remote
        self.acknowledged = threading.Semaphore(0)
        self._arrived = bytearray()
        self._changed = threading.Condition()
        self.closed = threading.Event()

    def feed(self, data: bytes) -> None:
        with self._changed:
            self._arrived += data
            self._changed.notify_all()

    def read(self, length: int) -> bytes:
        """So many bytes from the client; raises ConnectionError where it ends before."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._arrived) >= length or self.closed.is_set())
            if len(self._arrived) < length:
                raise ConnectionResetError("the stream is closed")
            data = bytes(self._arrived[:length])
            del self._arrived[:length]
            return data

    def read_some(self) -> bytes:
        """What has come from the client, one byte at least; nothing where the stream is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._arrived or self.closed.is_set())
            data = bytes(self._arrived)
            self._arrived.clear()
            return data

    def write(self, data: bytes) -> None:
        """Sends data, each message after the one before was acknowledged."""
        for start in range(0, len(data), self._connection.max_data):
            part = data[start : start + self._connection.max_data]
            self._connection.send(Message(b"WRTE", self.local, self.remote, part))
            self.acknowledged.acquire()
            if self.closed.is_set():
                raise ConnectionResetError("the stream is closed")

    def close(self) -> None:
        self.shut()
        self._connection.end(self)

    def shut(self) -> None:
        self.closed.set()
        self.acknowledged.release()
        with self._changed:
            self._changed.notify_all()
