"""What a device does for its clients: commands and files, in a folder that stands for its file system."""

import os
import pty
import re
import secrets
import signal
import socket
import stat
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

from device.adb_faults import Faults
from device.emulation import emulate_aarch64

TMP = "/data/local/tmp"
STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
CHUNK = 64 * 1024
PROPERTIES = {
    "ro.product.manufacturer": "Scratch",
    "ro.product.model": "One",
    "ro.soc.model": "SM0000",
    "ro.build.version.release": "14",
}


class Pipe(Protocol):
    """What a service reads from and writes to."""

    closed: threading.Event

    def read(self, length: int) -> bytes: ...

    def read_some(self) -> bytes: ...

    def write(self, data: bytes) -> None: ...


class Phone:
    """The device behind the daemon.

    Args:
        root: the folder that stands for ``/``; in commands only ``/data/local/tmp`` is translated.
        faults: what goes wrong.
        machine: its processor, ``aarch64``, emulated; None: this computer's.
        old: whether its daemon has no ``exec:`` and no frames, and runs commands in a terminal.
    """

    def __init__(self, root: Path, faults: Faults, machine: str | None = None, old: bool = False) -> None:
        self.root, self.faults, self.old = root, faults, old
        self.tmp = root / TMP.strip("/")
        self.tmp.mkdir(parents=True)
        self._translated = re.compile(f"(?<!{re.escape(str(root))}){TMP}")
        self._mark = secrets.token_hex(8)
        binaries = root / "system" / "bin"
        binaries.mkdir(parents=True)
        cases = " ".join(f"{name}) echo '{value}';;" for name, value in PROPERTIES.items())
        (binaries / "getprop").write_text(f"#!/bin/sh\ncase $1 in {cases} esac\n")
        (binaries / "getprop").chmod(0o755)
        self.environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(root),
            "ADB_TEST_DEVICE": self._mark,
        }
        if machine is not None:
            self.environment |= emulate_aarch64(binaries)

    def serves(self, name: str) -> bool:
        """Whether the daemon knows a service."""
        kind, *options = name.partition(":")[0].split(",")
        if kind == "tcp":
            with suppress(OSError), self.connected(name):
                return True
            return False
        return kind in (("sync", "shell") if self.old else ("sync", "shell", "exec")) and not (self.old and options)

    def connected(self, name: str) -> socket.socket:
        """A connection to a port of the device's loopback interface; raises OSError where nobody listens."""
        return socket.create_connection(("127.0.0.1", int(name.partition(":")[2])))

    def path(self, path: str) -> Path:
        """Where a path of the device is here; one that is here already stays."""
        return Path(path) if Path(path).is_relative_to(self.root) else self.root / path.lstrip("/")

    def start(self, command: str, errors: int, terminal: int | None = None) -> subprocess.Popen[bytes]:
        """Runs a command of a client, in pipes or in a terminal."""
        pipe = subprocess.PIPE if terminal is None else terminal
        return subprocess.Popen(
            ["/bin/sh", "-c", self._translated.sub(str(self.tmp), command)],
            cwd=self.root,
            env=self.environment,
            stdin=pipe,
            stdout=pipe,
            stderr=errors,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Kills all its processes, those that left their session included: they carry its mark."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get("ADB_TEST_DEVICE") == self._mark:
                    os.kill(process.pid, signal.SIGKILL)


def serve(phone: Phone, pipe: Pipe, name: str) -> None:
    """Serves one opened service to its end."""
    service, _, argument = name.partition(":")
    kind, *options = service.split(",")
    if kind == "sync":
        _sync(phone, pipe)
    elif kind == "tcp":
        _tcp(phone, pipe, name)
    elif kind == "shell" and "v2" in options:
        _shell_v2(phone, pipe, argument)
    elif kind == "shell" and phone.old:
        _shell_in_terminal(phone, pipe, argument)
    elif kind in ("shell", "exec"):
        _shell(phone, pipe, argument)


def _tcp(phone: Phone, pipe: Pipe, name: str) -> None:
    """Hands bytes on in both directions, until either side ends."""
    with phone.connected(name) as connection:

        def forward() -> None:
            with suppress(OSError):
                while data := pipe.read_some():
                    connection.sendall(data)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=forward, daemon=True).start()
        with suppress(OSError):
            while data := connection.recv(CHUNK):
                pipe.write(data)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _shell(phone: Phone, pipe: Pipe, command: str) -> None:
    """Output and errors as one stream, no exit code."""
    with phone.start(command, subprocess.STDOUT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        if phone.faults.strikes("cut"):
            output = process.stdout.read()
            pipe.write(output[: len(output) // 2])
            return
        while data := os.read(process.stdout.fileno(), CHUNK):
            pipe.write(data)


def _shell_in_terminal(phone: Phone, pipe: Pipe, command: str) -> None:
    """Output and errors through a terminal, which writes each line feed as two characters."""
    ours, theirs = pty.openpty()
    try:
        with phone.start(command, theirs, theirs):
            os.close(theirs)
            half = phone.faults.strikes("cut")
            with suppress(OSError):  # EIO: nobody writes to it any more
                while data := os.read(ours, 1000):
                    pipe.write(data[: len(data) // 2] if half else data)
                    if half:
                        break
    finally:
        os.close(ours)


def _shell_v2(phone: Phone, pipe: Pipe, command: str) -> None:
    """Output, errors and exit code in frames."""
    with phone.start(command, subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        sending = threading.Lock()

        def frame(kind: int, data: bytes) -> None:
            with sending:
                pipe.write(struct.pack("<BI", kind, len(data)) + data)

        def forward(kind: int, source: int) -> None:
            with suppress(OSError):
                while data := os.read(source, CHUNK):
                    frame(kind, data)

        def feed() -> None:
            with suppress(OSError, ValueError):
                while True:
                    kind, length = struct.unpack("<BI", pipe.read(5))
                    data = pipe.read(length)
                    if kind == STDIN:
                        os.write(process.stdin.fileno(), data)
                    elif kind == CLOSE_STDIN:
                        process.stdin.close()

        threading.Thread(target=feed, daemon=True).start()
        errors = threading.Thread(target=forward, args=(STDERR, process.stderr.fileno()))
        errors.start()
        forward(STDOUT, process.stdout.fileno())
        errors.join()
        code = process.wait()
        frame(EXIT, bytes([code if code >= 0 else 128 - code]))


def _sync(phone: Phone, pipe: Pipe) -> None:
    """Files: each request is four letters, a length, a path."""
    while True:
        request, length = struct.unpack("<4sI", pipe.read(8))
        path = pipe.read(length).decode()
        match request:
            case b"STAT":
                pipe.write(struct.pack("<4s3I", b"STAT", *_stat(phone.path(path))))
            case b"STA2" | b"LST2":
                pipe.write(_stat_v2(request, phone.path(path)))
            case b"LIST":
                for file in sorted(phone.path(path).iterdir()):
                    name = file.name.encode()
                    pipe.write(struct.pack("<4s4I", b"DENT", *_stat(file), len(name)) + name)
                pipe.write(struct.pack("<4s4I", b"DONE", 0, 0, 0, 0))
            case b"SEND":
                _receive_file(phone, pipe, path)
            case b"RECV":
                _send_file(phone, pipe, path)
            case b"QUIT":
                return
            case _:
                raise ValueError(f"unknown request {request!r}")


def _receive_file(phone: Phone, pipe: Pipe, target: str) -> None:
    name, _, mode = target.rpartition(",")
    data, modified = bytearray(), 0
    while True:
        kind, length = struct.unpack("<4sI", pipe.read(8))
        if kind == b"DONE":
            modified = length
            break
        data += pipe.read(length)
    if phone.faults.strikes("damage") and data:
        data[len(data) // 2] ^= 1
    try:
        if phone.faults.strikes("full"):
            raise OSError(28, "No space left on device")
        path = phone.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(stat.S_IMODE(int(mode)) | stat.S_IRUSR)
        os.utime(path, (modified, modified))
    except OSError as error:
        _fail(pipe, f"couldn't create file: {error.strerror}")
    else:
        pipe.write(struct.pack("<4sI", b"OKAY", 0))


def _send_file(phone: Phone, pipe: Pipe, name: str) -> None:
    try:
        data = bytearray(phone.path(name).read_bytes())
    except OSError as error:
        _fail(pipe, f"open failed: {error.strerror}")
        return
    if phone.faults.strikes("damage") and data:
        data[len(data) // 2] ^= 1
    for start in range(0, len(data), CHUNK):
        part = data[start : start + CHUNK]
        pipe.write(struct.pack("<4sI", b"DATA", len(part)) + part)
    pipe.write(struct.pack("<4sI", b"DONE", 0))


def _fail(pipe: Pipe, reason: str) -> None:
    pipe.write(struct.pack("<4sI", b"FAIL", len(reason)) + reason.encode())


def _stat(path: Path) -> tuple[int, int, int]:
    """Mode, size, time of modification; zeros where there is nothing."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mode, found.st_size & 0xFFFFFFFF, int(found.st_mtime)


def _stat_v2(request: bytes, path: Path) -> bytes:
    form = "<4sI2Q4IQ3q"
    try:
        found = path.lstat() if request == b"LST2" else path.stat()
    except OSError as error:
        return struct.pack(form, request, error.errno or 2, *[0] * 10)
    times = (int(found.st_atime), int(found.st_mtime), int(found.st_ctime))
    ids = (found.st_mode, found.st_nlink, found.st_uid, found.st_gid)
    return struct.pack(form, request, 0, found.st_dev, found.st_ino, *ids, found.st_size, *times)
