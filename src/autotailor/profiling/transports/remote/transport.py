"""What all remote transports share: with every kind of link, files arrive whole and commands outlive the connection.

A command runs on the device by itself and writes its output to files there. This computer reads those files again and
again, each time from the byte that it has reached. So a connection that is lost or stalled, or an answer that is cut
off, costs one look and never a line of output.
"""

import logging
import secrets
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from autotailor.artifacts import file_digest
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import DeviceError, RunLostError
from autotailor.profiling.transports.base import Deadline, LineSplitter, Stream, Transport, overdue
from autotailor.profiling.transports.remote import runs, scripts
from autotailor.profiling.transports.remote.link import Link, Patience
from autotailor.profiling.transports.remote.scripts import fill
from autotailor.profiling.transports.remote.shell import RemoteShell

logger = logging.getLogger(__name__)

TRIES = 3
"""How often a file is sent or fetched before its damage becomes an error."""
LIMIT = 2**18
"""Bytes of output that are read in one look."""
CATCHING_UP = 60.0
"""Seconds after a command's deadline in which its output may still be read.

The command may have written that output in time, while the device could not be reached.
"""
KEPT = "kept"
"""The folder of programs that later runs find again."""
ROOM_LEFT = 2**20
"""Bytes of free storage; with less, a command may have failed because it could not write its output."""


class RemoteTransport(Transport):
    """Commands and files on a device at the other end of a link.

    Args:
        device: the device's configuration.
        link: how to reach the device.
        base: the folder on the device that holds one folder for each run, unless the configuration names another.
        patience: how long to wait for the device.
    """

    def __init__(self, device: DeviceConfig, link: Link, base: str, patience: Patience) -> None:
        self.device = device
        self.link = link
        self.base = device.folder or base
        self.shell = RemoteShell(device.name, link, patience)
        self._name = runs.new_name()
        self._folder: str | None = None
        self._old: list[str] = []
        self._runs = 0

    @property
    def identity(self) -> str:
        return f"{self.device.transport}-{self.link.where}"

    @property
    def service(self) -> str:
        return self.link.service

    def check_configuration(self) -> None:
        """Refuses a private key whose file does not exist."""
        key = self.device.key
        if key and not Path(key).expanduser().is_file():
            raise DeviceError(
                f"device {self.device.name}: device.key is {key}, expected the file of a private key: make one "
                "(`adb keygen FILE`, `ssh-keygen -f FILE`), or set device.key to null for this user's own"
            )

    def check(self) -> None:
        """Connects, and checks that the device has the commands of the scripts and lets files be written."""
        self.check_configuration()
        self.shell.checked(fill(scripts.USABLE, base=self.base), f"cannot work in {self.base}")

    def probe(self) -> Mapping[str, Any]:
        return scripts.parse_facts(self.shell.checked(scripts.FACTS, "cannot tell what it is"))

    @property
    def folder(self) -> str:
        """This session's folder on the device, made when it is first needed. Making it removes what dead runs left."""
        if self._folder is None:
            text = self.shell.checked(
                fill(scripts.CLAIM, base=self.base, name=self._name), f"cannot make the folder {self.base}/{self._name}"
            )
            self._folder = text.strip().splitlines()[-1]
            others = self._others()
            self._old = [run.name for run in others if run.is_old]
            for run in others:
                if run.is_dead:
                    self.shell.ask(fill(scripts.TIDY, folder=f"{self.base}/{run.name}"))
        return self._folder

    def claim(self) -> str | None:
        if user := self._user():
            return user
        folder = self.folder  # made before the second look: of two runs that claim at once, neither goes on
        if user := self._user():
            self.shell.attempt_once(fill(scripts.REMOVE, folder=folder))
            self._folder = None
        return user

    def _user(self) -> str | None:
        return next((run.owner for run in self._others() if run.is_at_work), None)

    def _others(self) -> list[runs.RunFolder]:
        text = self.shell.checked(fill(scripts.RUNS, base=self.base), f"cannot look into {self.base}")
        return [run for run in runs.parse(text) if run.name != self._name]

    def push(self, source: Path, name: str) -> str:
        path = f"{self.folder}/{name}"
        parent, _, base = path.rpartition("/")
        self._check_room(parent, source.stat().st_size, name)
        digest = file_digest(source)
        part = f".{base}.{secrets.token_hex(4)}.part"

        def attempt() -> str:
            self.link.send(source, f"{parent}/{part}")
            return self.shell.checked_once(fill(scripts.SETTLE, folder=parent, part=part, name=base, digest=digest))

        def settle() -> str:
            # Where only the answer was lost, the file arrived and has its final name already.
            present = self.shell.checked_once(fill(scripts.SETTLED, folder=parent, name=base, digest=digest))
            return "" if present.strip() == "yes" else attempt()

        for _ in range(TRIES):
            if not self.shell.persist(settle).startswith("damaged"):
                return path
            logger.warning(
                "device %s: %s arrived damaged, sending it again; where this goes on, check the cable",
                self.device.name,
                name,
            )
        raise DeviceError(
            f"device {self.device.name}: {name} arrived damaged {TRIES} times (its SHA-256 differs): "
            "check the cable, the network and the device's storage"
        )

    def keep(self, source: Path) -> str:
        digest = file_digest(source)
        folder = f"{self.folder.rpartition('/')[0]}/{KEPT}"
        kept = f"{digest[:16]}-{source.name}"
        present = self.shell.ask(fill(scripts.SETTLED, folder=folder, name=kept, digest=digest))
        if present.strip() != "yes":
            path = self.push(source, kept)
            script = fill(scripts.KEEP, folder=folder, path=path, kept=kept, name=source.name)
            self.shell.checked(script, f"cannot keep {source.name}")
        return f"{folder}/{kept}"

    def keep_all(self, directory: Path, names: Sequence[str], label: str) -> str:
        # Kept files are named by their hashes. The folder of names is made last, of links, and is this session's: so it
        # is never half of one version and half of another.
        kept, digests = f"{self.folder.rpartition('/')[0]}/{KEPT}/{label}", [file_digest(directory / n) for n in names]
        by_digest = dict(zip(digests, names, strict=True))
        said = self.shell.ask(fill(scripts.LACKING, folder=kept, digests=" ".join(by_digest)))
        for digest in said.split():
            if digest in by_digest:
                path = self.push(directory / by_digest[digest], f"{label}.new/{digest}")
                self.shell.checked(fill(scripts.MOVE, path=path, folder=kept, name=digest), f"cannot keep {path}")
        folder = f"{self.folder}/{label}"
        links = [
            fill(scripts.LINK, target=f"{kept}/{d}", path=f"{folder}/{n}") for d, n in zip(digests, names, strict=True)
        ]
        self.shell.checked("".join(links), f"cannot make the folder {folder}")
        self.shell.ask(fill(scripts.PRUNE, folder=kept, digests=f" {' '.join(by_digest)} "))
        return folder

    def share(self, directory: Path, names: Sequence[str], folder: str) -> str:
        for name in names:
            self.push(directory / name, f"{folder}/{name}")
        return f"{self.folder}/{folder}"

    def pull(self, name: str, target: Path) -> None:
        parent, _, base = f"{self.folder}/{name}".rpartition("/")
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        part.touch()

        def attempt() -> bool:
            digest = self.shell.checked_once(fill(scripts.DIGEST, folder=parent, name=base)).split()[0]
            self.link.fetch(f"{parent}/{base}", part)
            return file_digest(part) == digest

        try:
            for _ in range(TRIES):
                if self.shell.persist(attempt):
                    part.replace(target)
                    return
                logger.warning(
                    "device %s: %s came back damaged, fetching it again; where this goes on, check the cable",
                    self.device.name,
                    name,
                )
        finally:
            part.unlink(missing_ok=True)
        raise DeviceError(
            f"device {self.device.name}: {name} came back damaged {TRIES} times (its SHA-256 differs): is something "
            "still writing to it? Otherwise check the cable and the network"
        )

    def run(
        self, command: Sequence[str], on_line: Callable[[str], None], timeout: float | Deadline | None = None
    ) -> int:
        folder, run = self.folder, f"run.{self._runs}"
        self._runs += 1
        environment = f"OMP_NUM_THREADS={self.device.threads} OPENBLAS_NUM_THREADS=1"
        body = scripts.BODY.format(command=f"{environment} {shlex.join(command)}", run=run)
        self.shell.checked(fill(scripts.START, folder=folder, run=run, body=body), f"cannot start {command[0]}")
        try:
            result = self._follow(run, on_line, Deadline.of(timeout), Path(command[0]).name)
        except BaseException:
            self.shell.attempt_once(fill(scripts.STOP, folder=folder))
            raise
        self.last_error = self.shell.ask(fill(scripts.ERRORS, folder=folder, run=run)).strip("\n")
        if result != 0:
            self._check_room(self.base, ROOM_LEFT, "the results")
        return 128 - result if result > 128 else result

    def dial(self, port: int) -> Stream:
        return self.shell.act(partial(self.link.dial, port))

    def rescue(self, path: str) -> str:
        return self.shell.checked(
            fill(scripts.RESCUE, folder=path.rpartition("/")[0], path=path), f"cannot read {path}"
        )

    def forget(self, path: str) -> None:
        self.shell.ask(fill(scripts.REMOVE, folder=path.rpartition("/")[0]))

    def discard(self, manifest: str, journal: str) -> None:
        self.shell.attempt_once(fill(scripts.DISCARD, manifest=manifest, journal=journal))

    def cleanup(self) -> None:
        if self._folder is not None:
            self.shell.attempt_once(fill(scripts.REMOVE, folder=self._folder))
            for name in self._old:
                self.shell.attempt_once(fill(scripts.REMOVE, folder=f"{self.base}/{name}"))
            self._folder = None
        self.link.close()

    def _follow(self, run: str, on_line: Callable[[str], None], deadline: Deadline | None, what: str) -> int:
        """Hands on a command's lines as they come; returns the command's exit code as the shell gives it."""
        read, splitter = 0, LineSplitter()
        while True:
            script = fill(scripts.POLL, folder=self.folder, run=run, start=read + 1, limit=LIMIT)
            new, _, code = self.shell.persist(partial(self.shell.output, script))[1].rpartition(b"\n")
            read += len(new)
            for line in splitter.feed(new):
                on_line(line)
            has_more = len(new) >= LIMIT
            if deadline is not None and deadline.left < (-CATCHING_UP if has_more else 0) and (has_more or not code):
                raise overdue(self.device.name, what, deadline.seconds)
            if has_more:
                continue
            if code == b"lost":
                self._check_room(self.base, ROOM_LEFT, "the results")
                raise RunLostError(
                    f"device {self.device.name}: {what} ended without an exit code after {read} bytes of output: "
                    "the device was restarted, or its system ended the command (too little memory?)"
                )
            if code:
                for line in splitter.rest():
                    on_line(line)
                return int(code)
            if not new:
                time.sleep(self.shell.patience.poll)

    def _check_room(self, folder: str, size: int, name: str) -> None:
        working = fill(scripts.WORKING, folder=self._folder) if self._folder else ""
        text = self.shell.checked(working + fill(scripts.ROOM, folder=folder), f"cannot make the folder {folder}")
        columns = text.split()
        if len(columns) >= 4 and columns[3].isdigit() and int(columns[3]) * 1024 < size:
            raise DeviceError(
                f"device {self.device.name}: no space for {name}: it needs {size / 2**20:.1f} MiB in {folder}, "
                f"{int(columns[3]) / 1024:.1f} MiB are free: remove something there, or set device.folder"
            )
