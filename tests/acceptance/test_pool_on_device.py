"""From a trained network to a pool that runs on a phone (aarch64, under QEMU), by the commands of the guide."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from acceptance.pipeline import MODEL, ROOT, pipeline
from autotailor.__main__ import main
from autotailor.profiling.transports.adb.tcp import user_key
from autotailor.serving import Client
from autotailor.serving.files import open_pool
from device.adb_daemon import AdbDaemon
from device.runners import built
from served import Serving, serve_binary, serve_command

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(2400)]


def outputs(client: Client, names: list[str], picture: np.ndarray) -> dict[str, np.ndarray]:
    """What each member says of a picture, after a switch to it."""
    found = {}
    for number, name in enumerate(names):
        client.set(pin=name)
        end = time.monotonic() + 120
        while (reply := client.infer(picture)).member != number:
            assert time.monotonic() < end, client.status()
        found[name] = reply.outputs
    return found


def test_a_pool_of_the_pipeline_runs_on_the_phone_as_on_this_computer(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("aarch64")
    serve_command("aarch64")
    home, listen = tmp_path / "home", tmp_path_factory.mktemp("s") / "s"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("ANDROID_USER_HOME", raising=False)
    user_key()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    directory, picture = tmp_path / "run", np.random.default_rng(1).normal(size=(3, 32, 32)).astype(np.float32)
    directory.mkdir()
    device = [f"device.address=127.0.0.1:{port}", "device.precision=fp32", "device.cores=[]", "device.threads=1"]
    with AdbDaemon(tmp_path / "phone", machine="aarch64", port=port) as daemon:
        done = pipeline(directory, home, "android", [*device, "pool.members=4", "pool.rounds=2"], "pool")
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        results = directory / "results" / MODEL / "android"
        pool = open_pool(results / "pool")
        names = [member.name for member in pool.index.members]
        assert len(names) >= 2
        assert all(member.latency_ms > 0 for member in pool.index.members)
        words = ["-m", "autotailor", "runtime", "serve", str(results), "--listen", f"unix:{listen}"]
        words += ["--conf", str(ROOT / "conf"), "--device", "android", *device]
        with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("sending to android what has changed of ")
            assert process.stdout.readline().startswith(f"serving {len(names)} members of ")
            with Client(f"unix:{listen}") as client:
                there = outputs(client, names, picture)
                assert client.status()["counters"]["switches"] >= len(names) - 1
            assert main(["runtime", "stop", "--at", f"unix:{listen}"]) == 0
            assert process.wait(60) == 0
        assert [path.name for path in (daemon.phone.tmp / "autotailor").iterdir()] == ["kept"]
    with Serving([str(serve_binary())], results / "pool") as server, Client(str(server.path)) as client:
        here = outputs(client, names, picture)
    for name in names:
        np.testing.assert_allclose(there[name], here[name], atol=1e-4 * np.abs(here[name]).max())
