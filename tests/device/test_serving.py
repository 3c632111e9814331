"""A pool on a device, as a user has it: sent, served, asked, switched and stopped, over adb and ssh."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotailor.__main__ import main
from autotailor.serving import Client, PoolError
from device.adb_daemon import AdbDaemon
from device.conftest import ssh_server
from device.ssh_server import SshServer
from pools import SIDES, TinyPool, tiny_pool
from served import Serving, serve_binary, serve_command

PICTURE = np.random.default_rng(7).normal(size=(3, max(SIDES), max(SIDES))).astype(np.float32)
SERVER = "autotailor-serve"


@dataclass
class Device:
    """A device for tests.

    Attributes:
        words: of ``--device``, that lead to it.
        files: its folder for the files of runs.
        leave: it goes away; processes live on.
        come_back: it can be reached again.
    """

    words: tuple[str, ...]
    files: Path
    leave: Callable[[], None]
    come_back: Callable[[], None]

    @property
    def servers(self) -> list[psutil.Process]:
        """The servers that run there."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_server = any(word.endswith(SERVER) for word in process.cmdline()[:3])
                if is_server and Path(process.cwd()).is_relative_to(self.files):
                    found.append(process)
        return found

    @property
    def kept(self) -> dict[str, tuple[int, int]]:
        """Files that later runs find again, each with what changes where it is written anew."""
        found = (self.files / "kept").rglob("*")
        return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in found if p.is_file()}

    def check_left(self) -> None:
        """Nothing is left there but what later runs find again."""
        assert self.servers == []
        assert sorted(path.name for path in self.files.iterdir()) == ["kept"]
        assert sorted(path.name for path in (self.files / "kept").iterdir())[1:] == ["pool-tiny"]


def phone_of(daemon: AdbDaemon) -> Device:
    words = ("android", "device.name=host", "device.cores=[]", f"device.address={daemon.address}")
    return Device(words, daemon.phone.tmp / "autotailor", daemon.stop, daemon.start)


def board_of(server: SshServer, files: Path) -> Device:
    words = (
        "orin",
        "device.name=host",
        "device.cores=[]",
        f"device.address={server.address}",
        f"device.folder={files}",
    )
    return Device(words, files, server.stop, server.start)


@pytest.fixture(params=["adb", pytest.param("ssh", marks=pytest.mark.sweep)])
def device(request: pytest.FixtureRequest, tmp_path: Path) -> Device:
    """A phone, and a board, with this computer's processor."""
    serve_binary()
    if request.param == "adb":
        return phone_of(request.getfixturevalue("phone"))
    return board_of(request.getfixturevalue("board"), tmp_path / "board")


@pytest.fixture(params=["adb", "ssh"])
def emulated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Device]:
    """A phone, and a board, with an aarch64."""
    serve_command("aarch64")  # both before the test has a home of its own, in which there is no compiled ncnn
    serve_binary()
    home: Path = request.getfixturevalue("home")
    if request.param == "adb":
        with AdbDaemon(tmp_path / "aarch64", machine="aarch64") as daemon:
            yield phone_of(daemon)
    else:
        server = ssh_server(tmp_path, home, machine="aarch64")
        yield board_of(server, tmp_path / "board")
        server.stop()


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


class Command:
    """``autotailor runtime serve --device`` as a process, which is over when the context ends."""

    def __init__(self, pool: TinyPool, device: Device, *options: str) -> None:
        self.address = f"unix:{pool.folder.parent / 's'}"
        words = [
            "-m",
            "autotailor",
            "runtime",
            "serve",
            str(pool.folder),
            "--listen",
            self.address,
            "--deadline-ms",
            "9",
            *options,
        ]
        self.process = subprocess.Popen(
            [sys.executable, *words, "--device", *device.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.pool, self.lines = pool, self.process.stdout

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=60)

    def ready(self) -> Command:
        """Waits until clients can connect."""
        first, second = self.lines.readline(), self.lines.readline()
        assert first == f"sending to host what has changed of {self.pool.folder}\n", self.end()
        assert second == f"serving 3 members of {self.pool.folder} on host at {self.address}; deadline 9 ms\n", (
            self.end()
        )
        return self

    def client(self) -> Client:
        return Client(self.address)

    def end(self) -> tuple[int, str]:
        """Exit code and errors, once it has ended."""
        said = self.process.communicate(timeout=120)[1]
        return self.process.returncode, said


def answers(client: Client) -> bool:
    """Whether the server answers a request."""
    try:
        return client.infer(PICTURE).outputs.shape == (4,)
    except PoolError:
        return False


def until(holds: Callable[[], object]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def walk(pool: TinyPool, device: Device, capsys: pytest.CaptureFixture[str]) -> dict[str, np.ndarray]:
    """Serves, infers with two members, and stops, as a user does; returns what the members said."""
    picture, outputs = pool.folder.parent / "p.npy", {}
    np.save(picture, PICTURE)
    with Command(pool, device).ready() as command:
        assert main(["runtime", "infer", str(picture), "--at", command.address]) == 0
        expected = pool.logits("member_02", PICTURE).argmax()
        assert f"class {expected} in " in capsys.readouterr().out
        with command.client() as client:
            for name in ("member_02", "member_00"):
                client.set(pin=name)
                number = int(name[-1])
                until(lambda: client.infer(PICTURE).member == number)  # noqa: B023
                side = SIDES[number]
                outputs[name] = client.infer(PICTURE[:, :side, :side]).outputs
            assert client.status()["counters"]["switches"] >= 1
            assert "autotailor_inferences_total" in client.metrics()
        assert main(["runtime", "status", "--at", command.address]) == 0
        assert "tiny on host" in capsys.readouterr().out
        assert len(device.servers) == 1
        assert main(["runtime", "stop", "--at", command.address]) == 0
        assert command.end()[0] == 0
    device.check_left()
    for name, found in outputs.items():
        side = SIDES[int(name[-1])]
        np.testing.assert_allclose(found, pool.logits(name, PICTURE[:, :side, :side]), atol=1e-4)
    return outputs


@pytest.mark.parametrize("device", ["adb", "ssh"], indirect=True)
def test_a_pool_is_sent_served_asked_switched_and_stopped(
    device: Device, pool: TinyPool, capsys: pytest.CaptureFixture[str]
) -> None:
    walk(pool, device, capsys)


@pytest.mark.sweep
def test_a_pool_on_an_aarch64_says_what_this_computer_says(
    emulated: Device, pool: TinyPool, capsys: pytest.CaptureFixture[str]
) -> None:
    there = walk(pool, emulated, capsys)
    (kept,) = (emulated.files / "kept").glob(f"*-{SERVER}")
    assert kept.read_bytes() == serve_binary("aarch64").read_bytes()
    with Serving([str(serve_binary())], pool.folder, "--pin", "member_00") as server, server.client() as client:
        side = SIDES[0]
        here = client.infer_with(0, PICTURE[:, :side, :side]).outputs
    np.testing.assert_allclose(there["member_00"], here, atol=1e-4)


@pytest.mark.sweep
def test_only_what_has_changed_is_sent_again(device: Device, pool: TinyPool, tmp_path: Path) -> None:
    def serve(served: TinyPool) -> dict[str, tuple[int, int]]:
        with Command(served, device).ready() as command, command.client() as client:
            client.set(pin="member_01")
            until(lambda: client.infer(PICTURE).member == 1)
            outputs = client.infer(PICTURE[:, :8, :8]).outputs
            np.testing.assert_allclose(outputs, served.logits("member_01", PICTURE[:, :8, :8]), atol=1e-4)
            client.stop()
            assert command.end()[0] == 0
        device.check_left()
        return device.kept

    first = serve(pool)
    assert len(first) == 1 + 3 + 2 * len(SIDES)
    assert serve(pool) == first
    damaged = next(path for path in (device.files / "kept" / "pool-tiny").iterdir() if path.stat().st_size > 500)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    again = serve(pool)
    assert {name for name in first if again[name] != first[name]} == {damaged.name}
    (tmp_path / "other").mkdir()
    other = serve(tiny_pool(tmp_path / "other" / "pool", seed=1))
    same = {name for name in other if other[name] == again.get(name)}
    assert len(other) == len(again)
    assert len(same) == 1 + 2 * len(SIDES)  # the program, and the members' networks and slices


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.sweep),
        pytest.param(signal.SIGHUP, marks=pytest.mark.sweep),
    ],
)
def test_an_interruption_leaves_nothing_running(device: Device, pool: TinyPool, number: signal.Signals) -> None:
    with Command(pool, device).ready() as command:
        assert len(device.servers) == 1
        command.process.send_signal(number)
        assert command.end()[0] == 0
    device.check_left()


@pytest.mark.sweep
def test_an_interruption_while_files_are_sent_leaves_nothing_half_sent(
    phone: AdbDaemon, pool: TinyPool, tmp_path: Path
) -> None:
    serve_binary()
    device = phone_of(phone)
    for _ in range(2):
        with Command(pool, device) as command:
            until(lambda: list(device.files.rglob(".*.part")))
            command.process.send_signal(signal.SIGINT)
            assert command.end()[0] == 0
        assert device.servers == []
        assert [path.name for path in device.files.iterdir()] in ([], ["kept"])
        assert not list(device.files.rglob("*.part"))
    with Command(pool, device).ready() as command, command.client() as client:
        assert client.infer(PICTURE).outputs.shape == (4,)


def test_what_a_killed_command_left_is_ended_by_the_next_one(device: Device, pool: TinyPool) -> None:
    with Command(pool, device).ready() as command:
        command.process.kill()
    (left,) = device.servers
    with Command(pool, device).ready() as command, command.client() as client:
        assert left.pid not in [process.pid for process in device.servers]
        client.infer(PICTURE)
        client.stop()
        assert command.end()[0] == 0
    device.check_left()


def test_a_pool_with_other_weights_is_sent_and_loaded_while_it_serves(
    device: Device, pool: TinyPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Command(pool, device).ready() as command, command.client() as client:
        (server,) = device.servers
        before = device.kept
        other = tiny_pool(tmp_path / "other", seed=1)
        shutil.rmtree(pool.folder)
        other.folder.rename(pool.folder)
        small = PICTURE[:, :8, :8]
        client.set(pin="member_00")
        until(lambda: client.infer(PICTURE).member == 0)
        np.testing.assert_allclose(client.infer(small).outputs, pool.logits("member_00", small), atol=1e-4)
        assert main(["runtime", "reload", "--at", command.address]) == 0
        assert capsys.readouterr().out == "serving 3 members of tiny on host\n"
        client.set(pin="member_00")
        until(lambda: client.infer(PICTURE).member == 0)
        np.testing.assert_allclose(client.infer(small).outputs, other.logits("member_00", small), atol=1e-4)
        assert [each.pid for each in device.servers] == [server.pid]
        assert 0 < len(set(device.kept) & set(before)) < len(before)  # only what has changed was sent
        client.stop()
        assert command.end()[0] == 0
    device.check_left()


@pytest.mark.parametrize(("kind", "after"), [("drop", 0), ("drop", 3), ("cut", 0)])
def test_a_connection_that_breaks_while_a_pool_is_sent_costs_no_reload(
    phone: AdbDaemon, pool: TinyPool, tmp_path: Path, kind: str, after: int
) -> None:
    serve_binary()
    with Command(pool, phone_of(phone)).ready() as command, command.client() as client:
        other = tiny_pool(tmp_path / "other", seed=1)
        shutil.rmtree(pool.folder)
        other.folder.rename(pool.folder)
        phone.faults.plan(kind, after)
        assert main(["runtime", "reload", "--at", command.address]) == 0
        assert phone.faults.happened[kind] == 1
        client.set(pin="member_00")
        until(lambda: client.infer(PICTURE).member == 0)
        small = PICTURE[:, :8, :8]
        np.testing.assert_allclose(client.infer(small).outputs, other.logits("member_00", small), atol=1e-4)
        client.stop()
        assert command.end()[0] == 0
    phone_of(phone).check_left()


def test_the_server_of_a_killed_command_ends_by_itself(device: Device, pool: TinyPool) -> None:
    with Command(pool, device, "--lease-s", "2").ready() as command:
        time.sleep(3)  # longer than the lease: the command renews it, though no client asks
        (server,) = device.servers
        command.process.kill()
        command.process.wait()
        assert server.is_running()
        until(lambda: not device.servers)
    with Command(pool, device).ready() as command, command.client() as client:  # and the next command finds no trace
        client.infer(PICTURE)
        client.stop()
        assert command.end()[0] == 0
    device.check_left()


@pytest.mark.sweep
def test_a_connection_that_breaks_for_a_second_does_not_end_the_server(device: Device, pool: TinyPool) -> None:
    with Command(pool, device, "--lease-s", "6").ready() as command, command.client() as client:
        (before,) = device.servers
        device.leave()
        time.sleep(1)
        device.come_back()
        until(lambda: answers(client))
        time.sleep(6)  # the lease of before the break would be over by now
        assert [server.pid for server in device.servers] == [before.pid]
        client.stop()
        assert command.end()[0] == 0
    device.check_left()


@pytest.mark.sweep
def test_a_device_that_is_away_for_longer_than_the_lease_ends_the_command(device: Device, pool: TinyPool) -> None:
    with Command(pool, device, "--lease-s", "2").ready() as command:
        device.leave()
        until(lambda: not device.servers)
        device.come_back()
        code, said = command.end()
    assert code == 1
    assert "no request has come for 2 s (--lease-s)" in said
    device.check_left()


@pytest.mark.sweep
def test_a_server_that_dies_there_ends_the_command(device: Device, pool: TinyPool) -> None:
    with Command(pool, device).ready() as command:
        (server,) = device.servers
        server.kill()
        code, said = command.end()
    assert code == 1
    assert "autotailor-serve ended with exit code -9" in said
    device.check_left()


def test_a_connection_that_breaks_costs_some_requests(device: Device, pool: TinyPool) -> None:
    with Command(pool, device).ready() as command, command.client() as client:
        assert answers(client)
        device.leave()
        with pytest.raises(PoolError):
            client.infer(PICTURE)
        device.come_back()
        until(lambda: answers(client))
        client.stop()
        assert command.end()[0] == 0
    device.check_left()


def test_a_device_that_is_away_is_named(pool: TinyPool, phone: AdbDaemon) -> None:
    serve_binary()
    phone.stop()
    with Command(pool, phone_of(phone)) as command:
        code, said = command.end()
    assert code == 1
    assert "no ADB daemon answers" in said
    assert "is it switched on" in said


def test_a_device_without_a_built_server_is_named_with_the_command(
    tmp_path: Path, home: Path, pool: TinyPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from autotailor.profiling.runtimes.runner import binary

    monkeypatch.setattr(binary, "FOLDER", tmp_path / "nothing")
    with AdbDaemon(tmp_path / "aarch64", machine="aarch64") as daemon:
        device = phone_of(daemon)
        assert main(["runtime", "serve", str(pool.folder), "--device", *device.words]) == 1
        assert "make serve TARGETS=aarch64" in capsys.readouterr().err
        assert not list(device.files.iterdir())


@pytest.mark.sweep
def test_a_board_whose_ssh_server_forbids_forwarding_is_told(board: SshServer, pool: TinyPool, tmp_path: Path) -> None:
    serve_binary()
    board.stop()
    with (tmp_path / "sshd" / "config").open("a") as config:
        config.write("AllowTcpForwarding no\n")
    board.start()
    device = board_of(board, tmp_path / "board")
    with Command(pool, device) as command:
        code, said = command.end()
    assert code == 1
    assert "set `AllowTcpForwarding yes`" in said
    device.check_left()


@pytest.mark.sweep
def test_a_phone_that_restarts_ends_the_command(phone: AdbDaemon, pool: TinyPool) -> None:
    serve_binary()
    device = phone_of(phone)
    with Command(pool, device).ready() as command:
        phone.reboot(2)
        code, said = command.end()
    assert code == 1
    assert "ended without an exit code" in said
    assert "the device was restarted" in said
    device.check_left()


@pytest.mark.sweep
def test_a_device_that_serves_already_is_named(device: Device, pool: TinyPool, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    with Command(pool, device).ready() as first:
        with Command(tiny_pool(tmp_path / "second" / "pool"), device) as second:
            code, said = second.end()
        assert code == 1
        assert f"device host is in use by process {first.process.pid} of " in said
        first.process.send_signal(signal.SIGINT)
        assert first.end()[0] == 0
    device.check_left()


@pytest.mark.sweep
def test_a_daemon_without_exec_serves_a_pool(tmp_path: Path, home: Path, pool: TinyPool) -> None:
    serve_binary()
    with AdbDaemon(tmp_path / "old", old=True) as daemon, Command(pool, phone_of(daemon)).ready() as command:
        with command.client() as client:
            assert client.infer(np.zeros((3, 12, 12), np.float32)).outputs.shape == (4,)
        os.kill(command.process.pid, signal.SIGINT)
        assert command.end()[0] == 0
        phone_of(daemon).check_left()
