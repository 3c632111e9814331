"""Where a server listens: a Unix socket, or a port of the loopback interface. Nothing else is offered.

``unix:PATH`` (or a path alone) and ``tcp:PORT``. A Unix socket is open to its owner only (mode 0600).

One server at a time begins or ends at the path of a Unix socket, as in ``src/runner/serve/wire/claim.h``. Otherwise two
servers could both find that a socket is a killed server's, and one of them would remove the other's.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotailor.serving.errors import PoolError

LOOPBACK = "127.0.0.1"
MOST_PATH_BYTES = 107
BACKLOG = 8

SUFFIX = ".lock"
"""How the name of the file ends, beside the socket, that is locked while a server begins or ends."""
PATIENCE_S = 5.0
LOOK_S = 0.01


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    Attributes:
        path: of a Unix socket; None for TCP.
        port: of the loopback interface; 0 takes a free one.
        inode: of the socket's file, where ``listen`` has made it.
    """

    path: Path | None = None
    port: int = 0
    inode: int | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """``unix:PATH``, ``tcp:PORT`` or a path.

        Raises:
            PoolError: the text is neither, or the path is too long for a socket.
        """
        kind, colon, rest = text.partition(":")
        if kind == "tcp":
            if not rest.isdecimal() or not int(rest) < 1 << 16:
                raise PoolError(f"address {text!r}: expected tcp:PORT with a port below 65536")
            return cls(port=int(rest))
        path = rest if colon and kind == "unix" else text
        if not path or "\0" in path or len(os.fsencode(path)) > MOST_PATH_BYTES:
            raise PoolError(
                f"address {text!r}: a Unix socket needs a path of 1 to {MOST_PATH_BYTES} bytes; take a shorter folder"
            )
        return cls(Path(path))

    def __str__(self) -> str:
        return f"tcp:{self.port}" if self.path is None else f"unix:{self.path}"

    @property
    def is_unix(self) -> bool:
        """Whether only processes of the socket's owner can connect."""
        return self.path is not None

    def connect(self, timeout_s: float) -> socket.socket:
        """A connection to the server.

        Raises:
            PoolError: nobody listens.
        """
        made = socket.socket(socket.AF_UNIX if self.is_unix else socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout_s)
            made.connect(str(self.path) if self.path else (LOOPBACK, self.port))
            if not self.is_unix:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            made.close()
            raise PoolError(
                f"{self}: no server answers ({error.strerror or error}); start one with `autotailor runtime serve`"
            ) from error
        return made

    def listen(self) -> tuple[socket.socket, Address]:
        """A listening socket, and the address with the port that it got.

        Raises:
            PoolError: another server listens there, or the address cannot be used.
        """
        made = socket.socket(socket.AF_UNIX if self.is_unix else socket.AF_INET, socket.SOCK_STREAM)
        try:
            if self.path is not None:
                with claimed(self.path):
                    self._free(self.path)
                    made.bind(str(self.path))
                    self.path.chmod(0o600)  # nobody can connect before listen
                    made.listen(BACKLOG)
                    return made, replace(self, inode=self.path.stat().st_ino)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((LOOPBACK, self.port))
            made.listen(BACKLOG)
            return made, Address(port=int(made.getsockname()[1]))
        except OSError as error:
            made.close()
            raise PoolError(f"{self}: cannot listen ({error.strerror or error}); choose another address") from error
        except PoolError:
            made.close()
            raise

    def release(self) -> None:
        """Removes the file of a Unix socket, unless another server has taken its place.

        The socket must still be open: its number (inode) is its own until then.
        """
        if self.path is not None and self.inode is not None:
            with suppress(OSError, PoolError), claimed(self.path):  # a socket that stays is replaced by the next server
                if self.path.stat().st_ino == self.inode:
                    self.path.unlink()

    def _free(self, path: Path) -> None:
        """Removes a socket that a killed server has left; any other file stays."""
        if not path.exists():
            return
        if not path.is_socket():
            raise PoolError(f"{self}: the file exists and is no socket; choose another path")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.settimeout(1.0)
            try:
                tried.connect(str(path))
            except ConnectionRefusedError:  # nobody listens; a busy server gives another error
                path.unlink()
                return
            except OSError:
                pass
        raise PoolError(f"{self}: another server listens there; stop it, or choose another path")


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Keeps other servers from beginning or ending at a path while the block runs.

    Args:
        path: of the socket, which need not be there.

    Raises:
        PoolError: another server takes too long.
        OSError: the file that is locked cannot be made.
    """
    lock, end = path.with_name(path.name + SUFFIX), time.monotonic() + PATIENCE_S
    while (descriptor := _taken(lock)) is None:
        if time.monotonic() >= end:
            raise PoolError(
                f"unix:{path}: another server has begun or ended there for {PATIENCE_S:g} s, and holds {lock}: end it, "
                "or choose another path"
            )
        time.sleep(LOOK_S)
    try:
        yield
    finally:
        with suppress(OSError):  # a file that stays does no harm
            lock.unlink()
        os.close(descriptor)


def _taken(lock: Path) -> int | None:
    """A descriptor of the locked file; None while another server has it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    is_mine = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_mine = os.path.samestat(os.fstat(descriptor), os.lstat(lock))  # else the last holder has just removed it
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not is_mine:
            os.close(descriptor)
    return descriptor if is_mine else None
