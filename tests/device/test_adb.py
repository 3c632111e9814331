"""The transport adb against the daemon, when all goes well; and Debian's own adb against the same daemon."""

import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotailor.profiling import DeviceConfig, DeviceError
from autotailor.profiling.transports.adb.tcp import user_key
from autotailor.profiling.transports.adb.transport import AdbTransport
from device.adb_daemon import AdbDaemon

Adb = Callable[..., subprocess.CompletedProcess[str]]


def ends(transport: AdbTransport) -> bool:
    """Whether the first command of a transport is gone, at once or soon: a signal takes its time."""
    pid = (Path(transport.folder) / "run.0" / "pid").read_text().strip()
    for _ in range(200):
        if not Path(f"/proc/{pid}/cwd").exists():
            return True
        time.sleep(0.05)
    return False


def test_facts_of_the_hardware(adb: AdbTransport) -> None:
    facts = adb.probe()
    assert facts["model"] == "Scratch One"
    assert facts["soc"] == "SM0000"
    assert facts["os"] == "Android 14"
    assert facts["machine"] == os.uname().machine
    assert facts["cores"] == os.cpu_count()
    assert facts["memory_gb"] > 0


def test_a_program_is_pushed_run_and_its_result_pulled(adb: AdbTransport, tmp_path: Path) -> None:
    program, back = tmp_path / "program", tmp_path / "back"
    program.write_text(
        "#!/bin/sh\necho $OMP_NUM_THREADS; echo \"$1\" > result; echo 'not well' >&2; printf last; exit 5\n"
    )
    path = adb.push(program, "bin/program")
    lines: list[str] = []
    assert adb.run([path, "two words; $HOME"], lines.append) == 5
    assert lines == ["2", "last"]
    assert adb.last_error == "not well"
    adb.pull("result", back)
    assert back.read_text() == "two words; $HOME\n"


def test_a_file_of_several_messages_keeps_its_bytes(adb: AdbTransport, tmp_path: Path) -> None:
    source, back = tmp_path / "sent", tmp_path / "back"
    source.write_bytes(os.urandom(3_000_000))
    assert Path(adb.push(source, "file")).read_bytes() == source.read_bytes()
    adb.pull("file", back)
    assert back.read_bytes() == source.read_bytes()


def test_lines_come_while_the_command_runs(adb: AdbTransport) -> None:
    flag = Path(adb.folder) / "flag"
    script = "echo first; while [ ! -e flag ]; do sleep 0.02; done; echo second"
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        flag.touch()

    assert adb.run(["sh", "-c", script], on_line, timeout=10) == 0
    assert lines == ["first", "second"]


def test_more_output_than_one_look_takes(adb: AdbTransport) -> None:
    lines: list[str] = []
    assert adb.run(["seq", "100000"], lines.append) == 0
    assert lines == [str(number) for number in range(1, 100001)]


def test_a_signal_is_a_negative_exit_code(adb: AdbTransport) -> None:
    assert adb.run(["sh", "-c", "kill -11 $$"], print) == -11


def test_a_command_that_takes_too_long_is_stopped(adb: AdbTransport) -> None:
    with pytest.raises(DeviceError, match=r"sleep did not end within 0\.2 s and was stopped"):
        adb.run(["sleep", "60"], print, timeout=0.2)
    assert ends(adb)


def test_an_error_in_the_receiver_stops_the_command(adb: AdbTransport) -> None:
    def on_line(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adb.run(["sh", "-c", "echo one; sleep 60"], on_line)
    assert ends(adb)


def test_cleanup_leaves_nothing(phone: AdbDaemon, adb: AdbTransport) -> None:
    assert Path(adb.folder).exists()
    adb.cleanup()
    assert not list(phone.phone.tmp.glob("autotailor/*"))


def test_a_serial_number_that_is_an_address(phone: AdbDaemon) -> None:
    with AdbTransport(DeviceConfig(name="phone", transport="adb", serial=phone.address)) as transport:
        transport.check()
        assert transport.identity == f"adb-{phone.address}"


def test_the_key_is_made_once_and_kept_private(home: Path) -> None:
    shutil.rmtree(home / ".android")
    key = user_key()
    assert key == home / ".android" / "adbkey"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    assert user_key().read_bytes() == before


@pytest.fixture
def debian_adb(home: Path) -> Iterator[Adb]:
    """Android's own client, with a server of its own."""
    program = shutil.which("adb")
    if program is None:
        pytest.skip("Debian's adb is missing: apt-get install adb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        environment = {**os.environ, "ANDROID_ADB_SERVER_PORT": str(free.getsockname()[1])}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [program, *arguments]
        given = {"env": environment, "stdin": subprocess.DEVNULL, "timeout": 30}
        return subprocess.run(command, capture_output=True, text=True, check=False, **given)

    yield run
    run("kill-server")


def test_debians_adb_connects_pushes_runs_and_pulls(phone: AdbDaemon, debian_adb: Adb, tmp_path: Path) -> None:
    debian_adb("connect", phone.address)
    phone_is = ("-s", phone.address)
    assert debian_adb(*phone_is, "wait-for-device").returncode == 0
    assert f"{phone.address}" in debian_adb("devices").stdout
    assert phone.asked == 1  # it had to prove its key

    source, back = tmp_path / "sent", tmp_path / "back"
    source.write_bytes(os.urandom(600_000))
    assert "1 file pushed" in debian_adb(*phone_is, "push", str(source), "/data/local/tmp/there").stdout
    assert (phone.phone.tmp / "there").read_bytes() == source.read_bytes()
    done = debian_adb(*phone_is, "shell", "wc -c < /data/local/tmp/there; echo not well >&2; exit 3")
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (3, "600000", "not well")
    assert debian_adb(*phone_is, "exec-out", "getprop ro.product.model").stdout == "One\n"
    assert "1 file pulled" in debian_adb(*phone_is, "pull", "/data/local/tmp/there", str(back)).stdout
    assert back.read_bytes() == source.read_bytes()
    done = debian_adb(*phone_is, "pull", "/data/local/tmp/nowhere", str(back))
    assert "does not exist" in done.stdout + done.stderr


def test_debians_adb_is_told_of_no_space(phone: AdbDaemon, debian_adb: Adb, tmp_path: Path) -> None:
    debian_adb("connect", phone.address)
    assert debian_adb("-s", phone.address, "wait-for-device").returncode == 0
    phone.faults.plan("full")
    (tmp_path / "sent").write_text("something")
    done = debian_adb("-s", phone.address, "push", str(tmp_path / "sent"), "/data/local/tmp/there")
    assert done.returncode != 0
    assert "No space left on device" in done.stdout + done.stderr


def test_debians_adb_works_with_the_old_daemon(tmp_path: Path, home: Path, debian_adb: Adb) -> None:
    with AdbDaemon(tmp_path / "board", old=True) as board:
        debian_adb("connect", board.address)
        board_is = ("-s", board.address)
        assert debian_adb(*board_is, "wait-for-device").returncode == 0
        (tmp_path / "sent").write_bytes(os.urandom(20_000))
        assert "1 file pushed" in debian_adb(*board_is, "push", str(tmp_path / "sent"), "/data/local/tmp/it").stdout
        assert debian_adb(*board_is, "shell", "wc -c < /data/local/tmp/it").stdout.strip() == "20000"
        assert debian_adb(*board_is, "exec-out", "echo nothing").returncode != 0
