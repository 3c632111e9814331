"""One device serves one run at a time, however it is addressed and whoever asks; what a run left unread stays there."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from autotailor.commands.doctor.examination import examine
from autotailor.commands.doctor.finding import Verdict
from autotailor.profiling import DeviceConfig, Store, profile
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.records.batch import portions
from autotailor.profiling.transports import TRANSPORTS
from autotailor.profiling.transports.adb.transport import AdbTransport
from autotailor.profiling.transports.remote.runs import RunFolder, new_name, parse
from device.adb_daemon import AdbDaemon
from device.conftest import IMPATIENT, connect
from device.runners import built
from device.test_remote_ncnn import ONCE, OPERATORS, config, leave_unread, left_on, visits

WORKER = """
import sys
from autotailor.profiling import DeviceConfig
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.transports import open_transport
device = DeviceConfig(name="phone", transport="adb", address=sys.argv[1])
transport = open_transport(device)
with DeviceLock(transport.identity, device.name), transport:
    assert transport.claim() is None
    script = "echo works; while [ ! -p go ]; do sleep 0.02; done; read line < go; echo done"
    transport.run(["sh", "-c", script], lambda line: print(line, flush=True))
"""


@contextmanager
def worker(phone: AdbDaemon) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the phone and runs a command there, until there is a file ``go`` in its folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WORKER, phone.address]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            (folder,) = appear(phone, "run-*")
            os.mkfifo(folder / "go")
            assert process.stdout is not None
            assert process.stdout.readline() == "works\n"
            yield process
        finally:
            process.kill()


def appear(phone: AdbDaemon, pattern: str) -> list[Path]:
    """Files in the phone's folder of runs, as soon as there are some."""
    deadline = time.monotonic() + 60
    while not (found := list((phone.phone.tmp / "autotailor").glob(pattern))):
        assert time.monotonic() < deadline, f"no {pattern}"
        time.sleep(0.02)
    return found


def go_on(phone: AdbDaemon, process: subprocess.Popen[str]) -> str:
    """Lets the worker's command end: what it says then."""
    (pipe,) = appear(phone, "run-*/go")
    pipe.write_text("on\n")
    assert process.stdout is not None
    said = process.stdout.read()
    assert process.wait(60) == 0
    return said


def elsewhere(phone: AdbDaemon) -> str:
    """The same phone under another name."""
    return phone.address.replace("127.0.0.1", "localhost")


def test_the_doctor_does_not_disturb_a_run(phone: AdbDaemon) -> None:
    with worker(phone) as process:
        device = DeviceConfig(name="phone", transport="adb", address=phone.address)
        found = {finding.check: finding for finding in examine(device)}
        assert go_on(phone, process) == "done\n"
    assert found["lock"].verdict is Verdict.WARNING
    assert f"process {process.pid} of" in found["lock"].detail
    assert "space" not in found


def test_a_second_address_of_a_device_in_use(phone: AdbDaemon) -> None:
    with worker(phone) as process, connect_to(elsewhere(phone)) as other:
        assert other.identity != f"adb-{phone.address}"
        assert other.claim() == f"process {process.pid} of this computer, under another address"
        assert len(appear(phone, "run-*")) == 1  # nothing of the one that waits
        assert go_on(phone, process) == "done\n"
        assert other.claim() is None


def connect_to(address: str) -> AdbTransport:
    return AdbTransport(DeviceConfig(name="phone", transport="adb", address=address), IMPATIENT)


def test_a_session_waits_for_a_run_under_another_address(
    phone: AdbDaemon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(TRANSPORTS, "adb", lambda device: AdbTransport(device, IMPATIENT))
    monkeypatch.setattr("autotailor.profiling.measuring.session.TURN_SECONDS", (0.1, 0.2))
    built("host")
    with worker(phone) as process:
        said = f"device phone is in use by process {process.pid} of this computer, under another address: waiting"

        def end() -> None:
            while said not in caplog.text and not entered.wait(0.05):
                pass
            go_on(phone, process)

        entered = threading.Event()
        ending = threading.Thread(target=end)
        ending.start()
        with Session(replace(config(phone), address=elsewhere(phone))):
            entered.set()
            ending.join()
            assert process.poll() == 0
    assert caplog.text.count(said) == 1


def test_another_computer_is_waited_for_and_never_stopped(phone: AdbDaemon, adb: AdbTransport) -> None:
    base = phone.phone.tmp / "autotailor"
    other = base / "run-elsewhere_abc123_0-77_1-00000000"
    (other / "run.0").mkdir(parents=True)
    assert adb.claim() == "another computer or user (elsewhere_abc123)"
    quiet = time.time() - 400
    os.utime(other, (quiet, quiet))
    assert adb.claim() is None
    with subprocess.Popen(["sleep", "60"], cwd=other) as process:
        (other / "run.0" / "pid").write_text(str(process.pid))
        os.utime(other, (quiet, quiet))
        assert adb.claim() == "another computer or user (elsewhere_abc123)"
        assert process.poll() is None
        process.kill()
    assert adb.claim() is None
    assert other.exists()


def test_what_dead_runs_have_not_told_is_kept_for_a_month(phone: AdbDaemon, adb: AdbTransport) -> None:
    base, dead = phone.phone.tmp / "autotailor", new_name().rpartition("-")[0]
    for name, journal, days in (("fresh", "{}", 0), ("old", "{}", 31), ("empty", "", 0)):
        (base / f"{dead}-{name}" / "run.0").mkdir(parents=True)
        (base / f"{dead}-{name}" / "profile-0.json.journal").write_text(journal)
        then = time.time() - 86400 * days
        os.utime(base / f"{dead}-{name}", (then, then))
    assert adb.claim() is None
    assert not (base / f"{dead}-empty").exists()
    assert [path.name for path in (base / f"{dead}-old").iterdir()] == [
        "profile-0.json.journal"
    ]  # may still be asked for
    adb.cleanup()
    assert [path.name for path in base.iterdir()] == [f"{dead}-fresh"]
    assert [path.name for path in (base / f"{dead}-fresh").iterdir()] == ["profile-0.json.journal"]


def test_processes_are_told_apart_by_when_they_started() -> None:
    make = [
        sys.executable,
        "-c",
        "from autotailor.profiling.transports.remote.runs import new_name\nprint(new_name()); input()",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(make, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        other = RunFolder(process.stdout.readline().strip(), works=False, idle_seconds=0)
        assert (other.is_dead, other.is_at_work) == (False, True)
        for seconds in (400, -400):  # the device's clock may have been set back
            assert (replace(other, idle_seconds=seconds).is_dead, replace(other, idle_seconds=seconds).is_at_work) == (
                False,
                False,
            )
        reused = replace(other, name=other.name.replace(f"-{process.pid}_", f"-{process.pid}_1"), works=True)
        assert (reused.is_dead, reused.is_at_work) == (True, False)
        process.communicate("\n")
    assert (other.is_dead, other.is_at_work) == (True, False)
    name = new_name()
    assert RunFolder(name, works=True, idle_seconds=0).is_dead  # this process has another one by now
    assert parse(f"cannot stat\nrun-x 0\n{name} 1 -3\r\n") == [RunFolder(name, works=True, idle_seconds=-3)]


def test_another_command_does_not_cost_what_a_run_has_left(
    phone: AdbDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("host")
    leave_unread(phone, tmp_path, monkeypatch)
    with connect(phone) as doctor:
        assert doctor.claim() is None
    monkeypatch.setattr(Session, "send", None)  # nothing is measured again
    profile(OPERATORS, config(phone), tmp_path)
    assert visits(tmp_path) == ONCE
    assert left_on(phone) == ["kept"]


def test_a_run_with_other_settings_does_not_cost_what_a_run_has_left(
    phone: AdbDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("host")
    leave_unread(phone, tmp_path, monkeypatch)
    profile(OPERATORS[:1], config(phone, precision="fp16"), tmp_path)
    monkeypatch.setattr(Session, "send", None)
    profile(OPERATORS, config(phone), tmp_path)
    counts = sorted(found.operators for found in Store(tmp_path).devices())
    assert counts == [2, len(OPERATORS) + 1]
    assert len(visits(tmp_path)) == len(OPERATORS) + 1


def test_a_journal_that_makes_no_sense_is_given_up(
    phone: AdbDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    built("host")
    leave_unread(phone, tmp_path, monkeypatch)
    (journal,) = phone.phone.tmp.rglob("*.journal")
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"sink"' not in line))
    profile(OPERATORS, config(phone), tmp_path)
    assert "an earlier run's journal is not whole" in caplog.text
    assert visits(tmp_path) == ONCE
    assert left_on(phone) == ["kept"]


def test_a_journal_of_a_store_that_is_gone_is_given_up(
    phone: AdbDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("host")
    leave_unread(phone, tmp_path, monkeypatch)
    for file in tmp_path.glob("operators.sqlite*"):
        file.unlink()
    profile(OPERATORS[:1], config(phone), tmp_path)
    assert visits(tmp_path) == [OPERATORS[0].id]
    assert left_on(phone) == ["kept"]
    assert not list(tmp_path.glob("unfinished-*"))


def test_sending_files_shows_that_a_run_is_at_work(phone: AdbDaemon, adb: AdbTransport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("something")
    folder, quiet = Path(adb.folder), time.time() - 400
    os.utime(folder, (quiet, quiet))
    adb.push(tmp_path / "file", "networks/1/file")
    assert time.time() - folder.stat().st_mtime < 60


def test_no_journal_is_taken_for_another_ones(
    phone: AdbDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("host")
    monkeypatch.setattr(
        "autotailor.profiling.measuring.profiler.portions", lambda batches: portions(batches, seconds=0)
    )
    seen: list[set[str]] = []
    send = Session.send

    def and_look(self: Session, *given: object) -> str:
        seen.append({path.name for path in phone.phone.tmp.rglob("profile-*")})
        return send(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "send", and_look)
    names: list[str] = []
    push = Session._push

    def and_note(self: Session, manifest: object, name: str) -> str:
        names.append(name)
        return push(self, manifest, name)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_push", and_note)
    profile(OPERATORS, config(phone), tmp_path)
    assert names == ["profile-0.json", "profile-1.json"]
    assert seen == [set(), set()]
    assert left_on(phone) == ["kept"]
    assert not list(tmp_path.rglob("unfinished-*"))
