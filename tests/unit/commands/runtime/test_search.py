"""``autotailor runtime search``: from a load under which nothing fits to a server that meets its deadline again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import autotailor
import finished_runs
from autotailor import data
from autotailor.__main__ import main
from autotailor.accuracy import CalibrationConfig
from autotailor.commands.runtime import search
from autotailor.pool import making
from autotailor.pool.config import PoolConfig
from autotailor.runtime import Client, Service
from autotailor.runtime.files import open_pool
from autotailor.runtime.serving import engine, service
from autotailor.runtime.wire import Address, Flag, Server
from pools import tiny_pool

IMAGE = np.zeros((3, 32, 32), np.float32)
LOAD = np.array([2.0, 3.0, 2.0])
"""Slowdowns of compute, memory and fixed costs that all inferences of the test have."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose pool lacks the fast half of the front."""
    folder = finished_runs.make(tmp_path_factory.mktemp("run"))
    opened = autotailor.open_run(folder)
    assert opened.lut is not None
    assert opened.device is not None
    front = opened.pareto.take(np.arange(len(opened.pareto) // 2, len(opened.pareto)))
    run = making.Run(opened.net, front, opened.accuracy, {}, opened.lut, opened.device)
    splits, module = data.load(opened.configuration["data"]), opened.net.module().eval()
    work, config = folder / "members", PoolConfig(members=2, rounds=0)
    export = making.exporter(opened.net, module, splits, CalibrationConfig(images=32), work)
    origin = making.origin_of("resnet_digits", opened.device, config)
    making.make_pool(folder / "pool", run, origin, config, export, None)
    return folder


@pytest.fixture
def served(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of the pool under a load that the test decides."""
    run_member = engine.run_member

    def slowed(net: object, member: engine.Member, picture: np.ndarray, watch: engine.Stopwatch) -> engine.Ran:
        took = float(LOAD @ member.split_ms)
        return replace(run_member(net, member, picture, watch), wall_ms=took, cpu_ms=took)

    monkeypatch.setattr(engine, "run_member", slowed)
    fastest = open_pool(folder / "pool").index.members[0]
    deadline = 0.9 * float(LOAD @ fastest.split_ms)
    with Service.of(folder / "pool", deadline, margin=0.0) as made, Server(made, Address(tmp_path / "s")) as server:
        server.start()
        yield server


def test_a_load_that_nothing_fits_ends_with_members_that_fit(
    folder: Path, served: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(service, "LONG_S", 0.5)
    monkeypatch.setattr(search, "LOOK_S", 0.1)
    at, is_over, failed = str(served.address), threading.Event(), []

    def ask() -> None:
        with Client(at) as client:
            while not is_over.wait(0.02):
                try:
                    client.infer(IMAGE)
                except Exception as error:  # the test fails with it
                    failed.append(error)

    with Client(at) as client:
        for _ in range(20):
            reply = client.infer(IMAGE)
        assert Flag.NOTHING_FITS in reply.flags
        asking = threading.Thread(target=ask)
        asking.start()
        assert main(["runtime", "search", str(folder), "--at", at, "--members", "2", "--wait"]) == 0
        is_over.set()
        asking.join()
        for _ in range(20):
            reply = client.infer(IMAGE)
        status = client.status()
    said = capsys.readouterr().out
    assert "waiting until no member of the pool has fitted for a minute" in said
    assert f"the server has loaded 4 members of {folder / 'pool'}" in said
    assert failed == []
    assert reply.flags == Flag(0)
    assert reply.latency_ms <= status["settings"]["deadline_ms"]
    added = json.loads((folder / "pool" / "pool.json").read_text())["searched_under_load"]
    assert [len(each["subnets"]) for each in added] == [2]
    assert not status["wants_search"]
    assert not list(folder.glob(search.WORK))


def test_where_no_subnet_fits_the_pool_stays(folder: Path, served: Server, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "pool" / "pool.txt").read_bytes()
    with Client(served.address) as client:
        client.set(deadline_ms=1e-4)
        client.infer(IMAGE)
        assert main(["runtime", "search", str(folder), "--at", str(served.address)]) == 1
        assert client.infer(IMAGE).flags == Flag.NOTHING_FITS | Flag.LATE
    assert "no SubNet of the space is expected to take at most" in (said := capsys.readouterr().err)
    assert "raise the deadline to" in said
    assert (folder / "pool" / "pool.txt").read_bytes() == before


def test_the_server_of_another_run_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tiny_pool(tmp_path / "pool")
    with Service.of(pool.folder, 5.0) as other, Server(other, Address(tmp_path / "s")) as server:
        server.start()
        assert main(["runtime", "search", str(folder), "--at", str(server.address)]) == 1
    text = "the server serves tiny on host, and the run is of resnet_digits on host: name the run of the pool"
    assert text in capsys.readouterr().err
