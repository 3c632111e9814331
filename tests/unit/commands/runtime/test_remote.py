"""``autotailor runtime serve --device`` on this computer, and what is refused before anything is sent."""

import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotailor.__main__ import main
from autotailor.commands.runtime.remote import lease_for
from autotailor.profiling.host.lock import DeviceLock
from autotailor.profiling.runtimes.runner import binary
from autotailor.profiling.transports import TRANSPORTS, LocalTransport
from autotailor.profiling.transports.base import Stream, Transport
from autotailor.serving import Client
from autotailor.serving.files import open_pool
from pools import TinyPool, tiny_pool
from served import serve_binary


@pytest.fixture(autouse=True)
def free_device() -> None:
    """Waits while a run of another worker measures on this computer, which a command refuses to wait for."""
    with DeviceLock("local", "host"):
        pass


@pytest.fixture
def pool(tmp_path: Path) -> TinyPool:
    return tiny_pool(tmp_path / "pool")


def said(pool: Path, capsys: pytest.CaptureFixture[str], *overrides: str) -> str:
    """What the command says when it fails."""
    listen = f"unix:{pool.parent / 's'}"
    assert main(["runtime", "serve", str(pool), "--listen", listen, "--device", "host", *overrides]) == 1
    assert not (pool.parent / "s").exists()
    return capsys.readouterr().err


def test_this_computer_is_a_device_too(pool: TinyPool, capfd: pytest.CaptureFixture[str]) -> None:
    serve_binary()
    listen = f"unix:{pool.folder.parent / 's'}"
    words = ["-m", "autotailor", "runtime", "serve", str(pool.folder), "--listen", listen, "--device", "host"]
    with subprocess.Popen([sys.executable, *words, "device.threads=1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"sending to host what has changed of {pool.folder}\n"
        assert process.stdout.readline().startswith(
            f"serving 3 members of {pool.folder} on host at {listen}; deadline "
        )
        with Client(listen) as client:
            picture = np.ones((3, 8, 8), np.float32)
            client.set(pin="member_00")
            while (reply := client.infer(picture)).member != 0:
                time.sleep(0.01)
            np.testing.assert_allclose(reply.outputs, pool.logits("member_00", picture), atol=1e-4)
            client.stop()
        assert process.stdout.read() == "stopped\n"
        assert process.wait(30) == 0
    assert capfd.readouterr().err == ""


def test_the_server_of_a_killed_command_ends_on_this_computer_too(pool: TinyPool) -> None:
    serve_binary()
    listen = f"unix:{pool.folder.parent / 's'}"
    words = ["-m", "autotailor", "runtime", "serve", str(pool.folder), "--listen", listen, "--lease-s", "1"]
    with subprocess.Popen([sys.executable, *words, "--device", "host"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.stdout.readline().startswith("serving 3 members of ")
        (server,) = psutil.Process(process.pid).children()
        process.kill()
        process.wait()
    psutil.wait_procs([server], timeout=60)
    assert not server.is_running()


def test_a_pool_can_be_sent_within_the_lease_of_its_server(pool: TinyPool) -> None:
    index = open_pool(pool.folder).index
    assert lease_for(index) == 121.0
    large = replace(index, weights=replace(index.weights, bytes=250_000_000))
    assert lease_for(large) == 371.0


def test_a_lease_without_a_device_is_refused(pool: TinyPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "serve", str(pool.folder), "--lease-s", "3"]) == 1
    assert "--lease-s: only a server on a device has a lease; name one with --device" in capsys.readouterr().err


def test_a_lease_that_is_no_time_is_refused(pool: TinyPool, capsys: pytest.CaptureFixture[str]) -> None:
    serve_binary()
    listen = f"unix:{pool.folder.parent / 's'}"
    words = ["runtime", "serve", str(pool.folder), "--listen", listen, "--lease-s", "0", "--device", "host"]
    assert main(words) == 1
    assert "--lease-s: expected a positive number of seconds" in capsys.readouterr().err


def test_a_missing_server_is_named_with_the_command_that_builds_it(
    pool: TinyPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(binary, "FOLDER", tmp_path / "nothing")
    assert "autotailor-serve is missing" in (text := said(pool.folder, capsys))
    assert "make serve TARGETS=host" in text


def test_the_pool_of_another_device_is_refused(pool: TinyPool, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(pool.folder, capsys, "device.name=phone")
    assert "made for the device host" in text
    assert "`autotailor run model=tiny device=phone -- pool`" in text
    assert "device.name=host" in text


@pytest.mark.parametrize("name", ["weights.bin", "norms.bin", "pool.txt", "members/member_01.param"])
def test_a_truncated_pool_is_refused(pool: TinyPool, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = pool.folder / name
    path.write_bytes(path.read_bytes()[:-4])
    assert name.rpartition("/")[2] in (text := said(pool.folder, capsys))
    assert "copy the folder of the pool again, or make it anew" in text


def test_a_folder_without_a_pool_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert "pool.txt" in said(tmp_path / "empty", capsys)


def test_an_unknown_device_is_named(pool: TinyPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "serve", str(pool.folder), "--device", "toaster"]) == 1
    assert "toaster" in capsys.readouterr().err


def test_a_transport_that_leads_to_no_port_is_refused(
    pool: TinyPool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Deaf(LocalTransport):
        def dial(self, port: int) -> Stream:
            return Transport.dial(self, port)

    serve_binary()
    monkeypatch.setitem(TRANSPORTS, "deaf", Deaf)
    text = said(pool.folder, capsys, "device.transport=deaf")
    assert "the transport Deaf does not lead to ports of the device" in text


def test_an_address_that_another_server_has_is_said_before_anything_is_sent(
    pool: TinyPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve_binary()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "s"))
        other.listen()
        assert (
            main(["runtime", "serve", str(pool.folder), "--listen", f"unix:{tmp_path / 's'}", "--device", "host"]) == 1
        )
    found = capsys.readouterr()
    assert "another server listens there" in found.err
    assert "sending" not in found.out


def test_a_setting_that_the_server_refuses_is_said_with_its_words(
    pool: TinyPool, capsys: pytest.CaptureFixture[str]
) -> None:
    serve_binary()
    listen = f"unix:{pool.folder.parent / 's'}"
    words = ["runtime", "serve", str(pool.folder), "--listen", listen, "--quantile", "2", "--device", "host"]
    assert main(words) == 1
    text = capsys.readouterr().err
    assert "autotailor-serve ended with exit code 1" in text
    assert "quantile" in text
