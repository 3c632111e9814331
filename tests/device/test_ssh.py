"""The transport ssh against a real OpenSSH server."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from autotailor.profiling import DeviceConfig, DeviceError, open_transport
from autotailor.profiling.errors import RunLostError
from autotailor.profiling.transports.ssh import SshTransport
from device.conftest import IMPATIENT
from device.ssh_server import SshServer


def configured(board: SshServer, tmp_path: Path, **values: object) -> DeviceConfig:
    section = {
        "name": "board",
        "transport": "ssh",
        "address": board.address,
        "folder": str(tmp_path / "board"),
        **values,
    }
    return DeviceConfig.from_section(section)


@pytest.fixture
def ssh(board: SshServer, tmp_path: Path) -> Iterator[SshTransport]:
    """The transport to it."""
    with SshTransport(configured(board, tmp_path), IMPATIENT) as transport:
        yield transport


def test_a_program_is_pushed_run_and_its_result_pulled(ssh: SshTransport, tmp_path: Path) -> None:
    ssh.check()
    assert ssh.probe()["machine"] == os.uname().machine
    program, big, back = tmp_path / "program", tmp_path / "big", tmp_path / "back"
    program.write_text('#!/bin/sh\necho "$1"; wc -c < big; cat big > result; echo not well >&2; exit 5\n')
    big.write_bytes(os.urandom(1_000_000))
    ssh.push(big, "big")
    lines: list[str] = []
    assert ssh.run([ssh.push(program, "program"), "it's two words; $HOME"], lines.append) == 5
    assert lines == ["it's two words; $HOME", "1000000"]
    assert ssh.last_error == "not well"
    ssh.pull("result", back)
    assert back.read_bytes() == big.read_bytes()
    ssh.cleanup()
    assert not list((tmp_path / "board").iterdir())


def test_a_lost_and_a_stalled_connection_cost_no_line(board: SshServer, tmp_path: Path) -> None:
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            board.drop()
        if len(lines) == 3:
            board.signal_sessions(signal.SIGSTOP)

    with SshTransport(configured(board, tmp_path), replace(IMPATIENT, answer=1.5)) as transport:
        script = "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done; exit 7"
        assert transport.run(["sh", "-c", script], on_line) == 7
    assert lines == [f"line {number}" for number in range(1, 6)]


def test_a_board_that_is_switched_off_and_on(board: SshServer, ssh: SshTransport, tmp_path: Path) -> None:
    pid: list[int] = []

    def on_line(line: str) -> None:
        pid.append(int(line))
        board.stop()
        os.kill(pid[0], signal.SIGKILL)
        threading.Timer(0.5, board.start).start()

    script = "cat run.0/pid; sleep 60"
    with pytest.raises(RunLostError, match="the device was restarted"):
        ssh.run(["sh", "-c", f"while [ ! -s run.0/pid ]; do sleep 0.05; done; {script}"], on_line)
    source = tmp_path / "sent"
    source.write_text("still works")
    assert Path(ssh.push(source, "file")).read_text() == "still works"


def test_errors_say_what_to_do(board: SshServer, ssh: SshTransport, tmp_path: Path, home: Path) -> None:
    missing = SshTransport(configured(board, tmp_path, folder="/proc/1/here"), IMPATIENT)
    with missing, pytest.raises(DeviceError, match=r"Permission denied.*device\.folder"):
        missing.check()
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(2**43)  # a file of holes
    with pytest.raises(DeviceError, match="no space for huge"):
        ssh.push(huge, "huge")
    with pytest.raises(DeviceError, match="nowhere: No such file"):
        ssh.pull("nowhere", tmp_path / "back")


def test_an_unknown_key_is_refused(board: SshServer, ssh: SshTransport, home: Path) -> None:
    (home / ".ssh" / "id_ed25519").unlink()
    with pytest.raises(
        DeviceError, match=rf"accepts none of this user's keys.*ssh-copy-id -p {board.port} 127\.0\.0\.1"
    ):
        ssh.check()


@pytest.mark.parametrize("known", ["nothing", "another key"])
def test_an_unknown_host_is_refused(board: SshServer, ssh: SshTransport, home: Path, known: str) -> None:
    known_hosts = home / ".ssh" / "known_hosts"
    known_hosts.unlink()
    if known == "another key":
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        known_hosts.write_text(f"[127.0.0.1]:{board.port} {other}")
    with pytest.raises(
        DeviceError, match=rf"host key of {board.address} is not in .*connect once with `ssh -p {board.port}"
    ):
        ssh.check()


def test_nobody_there(home: Path) -> None:
    device = DeviceConfig(name="board", transport="ssh", address="127.0.0.1:1")
    words = r"no SSH server answers at 127\.0\.0\.1:1 .*device\.address.*tried \d+ times"
    with SshTransport(device, replace(IMPATIENT, first=0.5)) as transport, pytest.raises(DeviceError, match=words):
        transport.check()


def test_an_address_is_needed(home: Path) -> None:
    with pytest.raises(DeviceError, match=r"set device\.address to \[user@\]host\[:port\]"):
        open_transport(DeviceConfig(name="board", transport="ssh"))


def test_the_console_and_the_log_get_nothing_of_what_asyncssh_says(board: SshServer, tmp_path: Path) -> None:
    code = (
        "import sys, logging; from autotailor import logs; logs.send_to(sys.argv[1])\n"
        "from autotailor.profiling import DeviceConfig, open_transport\n"
        "logging.getLogger('autotailor.profiling').info('measuring')\n"
        "logging.getLogger('some.library').info('chatter')\n"
        "logging.getLogger('some.library').warning('beware')\n"
        "device = DeviceConfig(name='board', transport='ssh', address=sys.argv[2], folder=sys.argv[3])\n"
        "with open_transport(device) as transport:\n"
        "    transport.check()\n"
        "    assert transport.run(['sh', '-c', 'echo a script of ours'], print) == 0\n"
    )
    log = tmp_path / "rule.log"
    arguments = [sys.executable, "-c", code, str(log), board.address, str(tmp_path / "board")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "a script of ours\n"
    assert done.stderr.splitlines() == ["measuring", "beware"]
    assert log.read_text().splitlines() == ["measuring", "chatter", "beware"]
