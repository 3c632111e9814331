"""A real OpenSSH server on the loopback interface, as a process of this user, with keys of its own."""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import asyncssh
import psutil

from device.emulation import emulate_aarch64

CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
SetEnv {environment}
"""
"""Its own HOME: the person's shell start-up files are none of the tests' business."""


class SshServer:
    """A server, and a client's home that knows it.

    Args:
        program: the path of sshd.
        folder: for its keys and its configuration.
        home: of the client: its key and the server's are written into ``.ssh``.
        machine: the board's processor, ``aarch64``, emulated; None: this computer's.
    """

    def __init__(self, program: str, folder: Path, home: Path, machine: str | None = None) -> None:
        self._program, self._folder, self._home = program, folder, home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        folder.mkdir()
        (home / ".ssh").mkdir(mode=0o700)
        if os.geteuid() == 0:  # where Debian's sshd, started by root, locks its helper in
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        user = asyncssh.generate_private_key("ssh-ed25519")
        user.write_private_key(home / ".ssh" / "id_ed25519")
        (home / ".ssh" / "id_ed25519").chmod(0o600)
        user.write_public_key(folder / "authorized_keys")
        self.change_host_key()
        self.trust()
        environment = {"HOME": str(folder)}
        if machine is not None:
            (binaries := folder / "bin").mkdir()
            environment |= {"PATH": f"{binaries}:{os.environ['PATH']}", **emulate_aarch64(binaries)}
        said = " ".join(f"{name}={value}" for name, value in environment.items())
        (folder / "config").write_text(CONFIG.format(port=self.port, folder=folder, environment=said))
        self.start()

    def change_host_key(self) -> None:
        """A new key, which no client knows."""
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._key.write_private_key(self._folder / "host_key")
        (self._folder / "host_key").chmod(0o600)

    def trust(self) -> None:
        """The client knows the server's present key."""
        public = self._key.export_public_key().decode()
        (self._home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")

    def start(self) -> None:
        """Starts it and waits until it listens."""
        command = [self._program, "-D", "-e", "-f", str(self._folder / "config")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(400):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError((self._folder / "log").read_text())

    def signal_sessions(self, number: signal.Signals) -> None:
        """Sends a signal to what serves the connections; commands are left alone."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if process.name().startswith("sshd"):
                    process.send_signal(number)

    def drop(self) -> None:
        """All connections break."""
        self.signal_sessions(signal.SIGKILL)

    def stop(self) -> None:
        """Stops listening, and breaks all connections."""
        self.signal_sessions(signal.SIGCONT)
        self.drop()
        self._process.terminate()
        self._process.wait(10)


def find_sshd() -> str | None:
    """The server's program, which Debian keeps out of a user's path."""
    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
