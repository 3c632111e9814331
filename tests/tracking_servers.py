"""PostgreSQL and an MLflow server of their own for tests, on loopback, in a temporary folder."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from stored_runs import user_environment

SETTINGS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
POSTGRES_USER = "postgres"  # of Debian's package; PostgreSQL refuses to run as root
SECONDS = 180.0


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def wait_for(found: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Waits until something is so; fails with a sentence."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"waited for {what} in vain"
        time.sleep(0.1)


def is_answered(address: str) -> bool:
    """Whether a server answers to a GET request with success."""
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def programs_of_postgresql() -> Path:
    """The folder of PostgreSQL's programs; a test is skipped where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = shutil.which("initdb")
    if not folders and found is None:
        pytest.skip("PostgreSQL is missing: apt-get install postgresql")
    return folders[-1] if folders else Path(str(found)).resolve().parent


@contextmanager
def postgresql() -> Iterator[str]:
    """A PostgreSQL of its own, with an empty database; gives the address for MLflow.

    Where the tests run as root, PostgreSQL runs as the user that Debian's package has made.
    """
    programs, port = programs_of_postgresql(), free_port()
    user = POSTGRES_USER if os.geteuid() == 0 else None
    own = {"user": user, "group": user, "extra_groups": []} if user else {}
    folder = Path(tempfile.mkdtemp(prefix="autotailor-postgresql-"))
    if user:
        shutil.chown(folder, user, user)

    def call(program: str, *arguments: str) -> None:
        command = [str(programs / program), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **own)
        assert done.returncode == 0, done.stdout + done.stderr

    data, options = str(folder / "data"), f"-c listen_addresses=127.0.0.1 -c fsync=off -p {port} -k {folder}"
    try:
        call("initdb", "--pgdata", data, "--username", "mlflow", "--auth", "trust", "--encoding", "UTF8")
        with (folder / "log").open("w") as log:
            command = [str(programs / "pg_ctl"), "--pgdata", data, "--wait", "-o", options, "start"]
            subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=True, timeout=SECONDS, **own)
        call("createdb", "--host", "127.0.0.1", "--port", str(port), "--username", "mlflow", "mlflow")
        yield f"postgresql://mlflow@127.0.0.1:{port}/mlflow"
    finally:
        stop = [str(programs / "pg_ctl"), "--pgdata", data, "--mode", "immediate", "stop"]
        subprocess.run(stop, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **own)
        shutil.rmtree(folder)


@dataclass
class MlflowServer:
    """An MLflow server, which can be killed and started again.

    Attributes:
        store: address of the database.
        folder: of the artifacts and of the log.
        port: on loopback; it stays the same.
    """

    store: str
    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None
    _log: IO[bytes] | None = None

    @property
    def uri(self) -> str:
        """For ``MLFLOW_TRACKING_URI``."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = (self.folder / "server.log").open("ab")
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--app-name", "autotailor", "--workers", "1", "--backend-store-uri", self.store]
        command += ["--artifacts-destination", str(self.folder / "artifacts")]
        environment = {**user_environment(), **SETTINGS}
        self._process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=self._log, stderr=self._log, start_new_session=True
        )
        wait_for(self._answers, f"the MLflow server, see {self.folder / 'server.log'}")

    def _answers(self) -> bool:
        assert self._process is None or self._process.poll() is None, (self.folder / "server.log").read_text()
        return is_answered(f"{self.uri}/health")

    def kill(self) -> None:
        """Kills the server and its workers; nothing of the server listens afterwards."""
        if self._process is None:
            return
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        if self._log:
            self._log.close()


@contextmanager
def mlflow_server(folder: Path) -> Iterator[MlflowServer]:
    """An MLflow server whose store is PostgreSQL."""
    with ExitStack() as stack:
        server = MlflowServer(stack.enter_context(postgresql()), folder)
        stack.callback(server.kill)
        server.start()
        yield server
