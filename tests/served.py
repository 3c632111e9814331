"""A server of a pool in C++ (``autotailor-serve``) for tests, and a client that can also send what is no request."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest

from device.emulation import QEMU, needed

SOURCES = Path(__file__).parents[1] / "src" / "runner" / "serve"
HEADER = struct.Struct("<IHHQI")
MAGIC = 0x4C4F4F50
INFER, STATUS, METRICS, SET, STOP, RELOAD, OPEN, INFER_EXITS, REPLY, ERROR = 1, 2, 3, 4, 5, 6, 7, 8, 128, 255
SWITCHED, NOTHING_FITS, LATE = 1, 2, 4
LONGEST = 107
"""Bytes of a Unix socket's path; in a longer one of pytest's folders, the server gets a socket elsewhere."""


@cache
def _build() -> ModuleType:
    specification = importlib.util.spec_from_file_location("serve_build", SOURCES / "make.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def ncnn_headers() -> list[str]:
    """Options of a compiler that finds ncnn's headers, as the server for this computer is built with them."""
    serve_binary("host")
    return [f"-I{_build().runner.ncnn_source() / 'src'}", f"-I{_build().ncnn('host')}"]


@cache
def serve_binary(target: str = "host") -> Path:
    """The server of a target, with library and header beside it.

    Where ncnn has been compiled before, the server takes seconds to build, and is built. The test is skipped otherwise.
    """
    build = _build()
    compiler = "g++" if target != "aarch64" else "aarch64-linux-gnu-g++"
    if not all(shutil.which(program) for program in (compiler, "cmake", "ninja")):
        reason = f"{compiler}, cmake or ninja is missing: apt-get install g++ cmake ninja-build"
        pytest.skip(reason, allow_module_level=True)
    compiled = build.runner.BUILD / build.base(target) / "ncnn" / "src" / "libncnn.a"
    if not compiled.exists() and not (build.cached_ncnn(target) / "libncnn.a").exists():
        pytest.skip("ncnn is not compiled, which takes minutes: make serve", allow_module_level=True)
    done = subprocess.run([sys.executable, SOURCES / "make.py", target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(build.runner.BUILD / target / build.BINARY)


class Refused(Exception):
    """The server answered with an error."""


@dataclass(frozen=True)
class Answer:
    """What the server says of a picture."""

    member: int
    flags: int
    latency_ms: float
    cpu_ms: float
    outputs: npt.NDArray[np.float32]


class Client:
    """A connection; ``address`` is a path or a port."""

    def __init__(self, address: Path | int) -> None:
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET)
        self.socket.settimeout(60)
        self.socket.connect(str(address) if isinstance(address, Path) else ("127.0.0.1", address))
        self.number = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, kind: int, body: bytes = b"") -> int:
        """Sends a frame; returns its id."""
        self.number += 1
        self.socket.sendall(HEADER.pack(MAGIC, 1, kind, self.number, len(body)) + body)
        return self.number

    def receive(self) -> tuple[int, int, bytes]:
        """Kind, id and body of the next frame.

        Raises:
            EOFError: the server has ended the connection.
        """
        magic, version, kind, number, length = HEADER.unpack(self._exactly(HEADER.size))
        assert (magic, version) == (MAGIC, 1)
        return kind, number, self._exactly(length)

    def ask(self, kind: int, body: bytes = b"") -> bytes:
        """The body of the answer to a request.

        Raises:
            Refused: the answer is an error.
        """
        sent = self.send(kind, body)
        found, number, content = self.receive()
        assert number == sent
        if found == ERROR:
            raise Refused(content.decode())
        assert found == kind + REPLY
        return content

    def infer(self, picture: npt.NDArray[np.float32], deadline_ms: float = 0.0) -> Answer:
        """The answer to a picture ``[C, H, W]``."""
        body = self.ask(INFER, infer_body(picture, deadline_ms))
        member, flags, latency, cpu, count = struct.unpack_from("<HHffI", body)
        outputs = np.frombuffer(body, "<f4", offset=16)
        assert len(outputs) == count
        return Answer(member, flags, latency, cpu, outputs)

    def infer_with(self, member: int, picture: npt.NDArray[np.float32], tries: int = 5000) -> Answer:
        """The answer of one member, once that member runs."""
        for _ in range(tries):
            answer = self.infer(picture)
            if answer.member == member:
                return answer
            time.sleep(0.002)
        raise AssertionError(f"member {member} never ran: {self.status()}")

    def status(self) -> dict[str, Any]:
        """Status as an object."""
        return dict(json.loads(self.ask(STATUS)))

    def set(self, **settings: Any) -> dict[str, Any]:
        """All settings after a change."""
        return dict(json.loads(self.ask(SET, json.dumps(settings).encode())))

    def _exactly(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            part = self.socket.recv(count - len(content))
            if not part:
                raise EOFError
            content += part
        return content


def infer_body(picture: npt.NDArray[np.float32], deadline_ms: float = 0.0) -> bytes:
    """The body of a request for an inference."""
    return struct.pack("<fHHHH", deadline_ms, *picture.shape, 0) + picture.astype("<f4").tobytes()


@cache
def serve_command(target: str) -> tuple[str, ...]:
    """The words that start the server of a target on this computer."""
    binary = str(serve_binary(target))
    return (needed(QEMU, "qemu-user-static"), binary) if target == "aarch64" else (binary,)


class Serving:
    """A server that runs while the context is open; it must end without an error, of a sanitizer's for example."""

    def __init__(self, command: Sequence[str], pool: Path, *options: str, port: bool = False) -> None:
        self.path = pool / "serve.sock"
        if not port and len(os.fsencode(self.path)) > LONGEST:
            self.path = Path(tempfile.mkdtemp(prefix="serve-")) / "serve.sock"
            options = ("--socket", str(self.path), *options)
        words = [*command, str(pool), *(["--tcp", "0"] if port else []), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline()
        self.key = self.first_line.removeprefix("key ").strip() if port else ""
        if port:
            self.first_line = self.process.stdout.readline()
        if not self.first_line:
            raise AssertionError(self.process.communicate(timeout=60)[1])
        self.address: Path | int = int(self.first_line.rpartition(":")[2]) if port else self.path

    def __enter__(self) -> Serving:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode == -signal.SIGKILL:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            _, said = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, said = self.process.communicate()
        if error is None:
            assert self.process.returncode == 0, said

    def client(self) -> Client:
        """A new connection."""
        return Client(self.address)

    def kill(self) -> None:
        """Ends the server as a crash does."""
        self.process.kill()
        self.process.communicate()

    def memory_bytes(self) -> int:
        """Memory of the server that no file backs."""
        with open(f"/proc/{self.process.pid}/status") as stream:
            found = next(line for line in stream if line.startswith("RssAnon"))
        return int(found.split()[1]) * 1024

    def descriptors(self) -> int:
        """How many files and sockets the server has open."""
        return psutil.Process(self.process.pid).num_fds()


def refusal(command: Sequence[str], *words: str) -> str:
    """What a program that does not start says."""
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    return done.stderr
