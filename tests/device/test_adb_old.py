"""A Linux board's older ADB daemon: no ``exec:``, messages of 4 kB with checksums, a terminal behind ``shell:``."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotailor.commands.doctor.examination import examine
from autotailor.profiling import DeviceConfig, DeviceError
from autotailor.profiling.transports.adb import streams as adb_streams
from autotailor.profiling.transports.adb.streams import ENCODERS, framed, unframed
from autotailor.profiling.transports.adb.transport import AdbTransport
from device.adb_daemon import AdbDaemon
from device.conftest import connect

COUNT = "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.05; done; exit 7"


@pytest.fixture
def old_board(tmp_path: Path, home: Path) -> Iterator[AdbDaemon]:
    with AdbDaemon(tmp_path / "board", old=True) as daemon:
        yield daemon


@pytest.fixture
def old(old_board: AdbDaemon) -> Iterator[AdbTransport]:
    with connect(old_board) as transport:
        yield transport


def test_a_program_is_pushed_run_and_its_result_pulled(old: AdbTransport, tmp_path: Path) -> None:
    old.check()
    assert old.probe()["machine"] == os.uname().machine
    source, program, back = tmp_path / "sent", tmp_path / "program", tmp_path / "back"
    source.write_bytes(os.urandom(100_000))
    program.write_text("#!/bin/sh\necho \"$1\"; cat sent > result; printf 'not well\\r' >&2; printf last; exit 5\n")
    assert Path(old.push(source, "sent")).read_bytes() == source.read_bytes()
    lines: list[str] = []
    assert old.run([old.push(program, "program"), "it's two words; $HOME"], lines.append) == 5
    assert lines == ["it's two words; $HOME", "last"]
    assert old.last_error == "not well\r"
    old.pull("result", back)
    assert back.read_bytes() == source.read_bytes()
    assert old.service == "shell: with base64 (no exec:)"


@pytest.mark.parametrize("kind", ["drop", "stall", "corrupt", "cut"])
def test_no_line_is_lost_or_doubled(old_board: AdbDaemon, old: AdbTransport, kind: str) -> None:
    old.check()
    old_board.faults.plan(kind, after=2, times=3, seconds=0.3)
    lines: list[str] = []
    assert old.run(["sh", "-c", COUNT], lines.append) == 7
    assert lines == [f"line {number}" for number in range(1, 7)]
    assert old_board.faults.happened[kind] == 3


def test_what_a_script_prints_keeps_its_bytes(old: AdbTransport) -> None:
    old.check()
    script = r"printf '\000\001\r\n\n\r\377\033[2J\004'; head -c 20000 /dev/zero | tr '\000' '\n'"
    assert old.link.shell(script) == b"\0\1\r\n\n\r\xff\x1b[2J\4" + b"\n" * 20_000


def test_a_script_that_is_longer_than_a_message_runs(old_board: AdbDaemon, old: AdbTransport) -> None:
    old.check()
    long = "x" * 10_000
    assert old.link.shell(f"echo '{long}'") == long.encode() + b"\n"
    assert not [path for path in old_board.phone.tmp.rglob("*") if path.is_file()]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_each_encoder_keeps_all_bytes(monkeypatch: pytest.MonkeyPatch, encoder: str) -> None:
    """As on a board that has no other: the script is run by this computer's shell."""
    there = subprocess.run(["sh", "-c", f"command -v {encoder}"], check=False, capture_output=True).returncode == 0
    if not there:
        pytest.skip(f"{encoder} is missing: apt-get install coreutils xxd bsdextrautils")
    others = [name for name in ENCODERS if name != encoder]
    frame = adb_streams.FRAME
    for name in others:
        frame = frame.replace(f"{{ {ENCODERS[name]}; }}", "{ false; }")
    monkeypatch.setattr(adb_streams, "FRAME", frame)
    script, mark = framed('i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %03o $i)"; i=$((i+1)); done')
    answer = subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout
    for given in (answer, answer.replace(b"\n", b"\r\n"), b"Welcome to the board\r\n" + answer):
        assert unframed("board", given, mark) == (bytes(range(256)), encoder)


def test_a_board_that_cannot_encode_says_what_it_lacks(old_board: AdbDaemon, old: AdbTransport) -> None:
    scratch = old_board.phone.root / "bin"
    scratch.mkdir()
    for name in ("cat", "date", "df", "dirname", "head", "readlink", "sha256sum", "stat", "tail"):
        (scratch / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    old_board.phone.environment["PATH"] = str(scratch)
    with pytest.raises(DeviceError, match=r"lacks the service exec:.*one of the programs base64, xxd, od, hexdump"):
        old.check()


def test_a_daemon_without_any_shell_is_refused(
    old_board: AdbDaemon, old: AdbTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_board.phone, "serves", lambda name: False)
    with pytest.raises(DeviceError, match="neither the service exec: nor shell:"):
        old.check()


@pytest.mark.parametrize("is_old", [True, False])
def test_the_doctor_says_which_service_is_used(tmp_path: Path, home: Path, is_old: bool) -> None:
    with AdbDaemon(tmp_path / "board", old=is_old) as daemon:
        findings = examine(DeviceConfig(name="board", transport="adb", address=daemon.address))
        reachable = next(iter(findings))
    assert reachable.detail.endswith("through shell: with base64 (no exec:)" if is_old else "through exec:")
