"""ncnn's operators and networks on devices: the compiled runner over adb and ssh, and nothing lost whatever happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotailor
from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.profiling import (
    DeviceConfig,
    DeviceError,
    ProfilingError,
    Store,
    check,
    measure_baseline,
    measure_memory,
    measure_rounds,
    open_runtime,
    profile,
)
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.runtimes.ncnn.compiled import NcnnCompiledRuntime
from autotailor.profiling.transports import TRANSPORTS
from autotailor.profiling.transports.adb.transport import AdbTransport
from device.adb_daemon import AdbDaemon
from device.conftest import IMPATIENT
from device.runners import built
from device.ssh_server import SshServer

PARAM = "7767517\n3 3\nInput in0 0 1 in0\nInnerProduct fc 1 1 in0 a 0=3 1=1 2=12\nReLU r 1 1 a out0\n"


def relu(side: int) -> OperatorFeature:
    shape = (1, 8, side, side)
    return OperatorFeature("Relu", (shape,), (shape,))


def conv(side: int) -> OperatorFeature:
    shape = (1, 8, side, side)
    attributes = freeze_attributes({"pads": (1, 1, 1, 1), "strides": (1, 1), "group": 1})
    return OperatorFeature("Conv", (shape,), (shape,), ((8, 8, 3, 3), (8,)), attributes)


OPERATORS = [made(side) for made in (relu, conv) for side in range(4, 13)]  # two batches


def config(phone: AdbDaemon, **values: object) -> DeviceConfig:
    chosen = {
        "warmup": 1,
        "evict_mb": 0,
        "energy_seconds": 0,
        "precision_target": 0.9,
        "drift": 10,
        "min_minutes": 0,
        **values,
    }
    return DeviceConfig.from_section({"name": "phone", "transport": "adb", "address": phone.address, **chosen})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRANSPORTS, "adb", lambda device: AdbTransport(device, IMPATIENT))


@pytest.fixture
def runner() -> Path:
    return built("host")


@pytest.fixture
def emulated(tmp_path: Path, home: Path) -> Iterator[AdbDaemon]:
    """A phone with an aarch64."""
    built("aarch64")
    with AdbDaemon(tmp_path / "aarch64", machine="aarch64") as daemon:
        yield daemon


def visits(store: Path) -> list[str]:
    """Operators of all visits, the anchor's left out."""
    opened = Store(store)
    records = [
        (record.key, device.fingerprint.anchor)
        for device in opened.devices()
        for record in opened.records(device.fingerprint.id)
    ]
    return sorted(key for key, anchor in records if key != anchor)


ONCE = sorted(feature.id for feature in OPERATORS)


def left_on(phone: AdbDaemon) -> list[str]:
    return sorted(path.name for path in (phone.phone.tmp / "autotailor").iterdir())


def test_operators_on_an_aarch64(emulated: AdbDaemon, tmp_path: Path) -> None:
    check(config(emulated))
    lut = profile(OPERATORS[:3], config(emulated), tmp_path / "store")
    assert {feature.id for feature in OPERATORS[:3]} < set(lut.latencies())
    assert lut.device is not None
    assert lut.device.facts["hardware"]["machine"] == "aarch64"
    assert lut.device.facts["runtime"]["name"] == "ncnn"
    assert lut.device.facts["runtime"]["runner"]["options"].startswith("aarch64 ")
    assert left_on(emulated) == ["kept"]


def test_the_runner_is_sent_once(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    kept = phone.phone.tmp / "autotailor" / "kept"
    profile(OPERATORS[:1], config(phone), tmp_path)
    (first,) = kept.iterdir()
    sent = first.stat().st_mtime_ns, first.stat().st_ino
    profile(OPERATORS[:2], config(phone), tmp_path)
    assert (first.stat().st_mtime_ns, first.stat().st_ino) == sent
    first.write_bytes(first.read_bytes()[:-1])  # damaged since
    (kept / "0123456789abcdef-autotailor-runner").write_text("an older version")
    profile(OPERATORS[:3], config(phone), tmp_path)
    assert list(kept.iterdir()) == [first]
    assert first.read_bytes() == runner.read_bytes()


def test_whole_networks(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    networks = {}
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.ncnn.param").write_text(PARAM)
        (folder / "model.ncnn.bin").write_bytes(bytes(4 + 12 * 4 + 3 * 4))
        networks[name] = (folder, (1, 4))
    rounds = measure_rounds(networks, config(phone), 2, seconds_each=0.05)
    assert [[measured.key for measured in found] for found in rounds] == [["a", "b"]] * 2
    assert all(measured.repeats > 0 for found in rounds for measured in found)
    assert left_on(phone) == ["kept"]
    (tmp_path / "b" / "model.ncnn.param").write_text("nonsense")
    with pytest.raises(ProfilingError, match="networks cannot be run: b: ncnn cannot load its layers"):
        measure_rounds(networks, config(phone), 1, seconds_each=0.05)


def test_operators_in_place_and_what_they_weigh(
    phone: AdbDaemon,
    runner: Path,
    resnet_net: autotailor.SuperNet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifests = list[dict[str, Any]]()
    text = NcnnCompiledRuntime.manifest

    def and_keep(self: NcnnCompiledRuntime, manifest: dict[str, Any]) -> str:
        manifests.append(manifest)
        return text(self, manifest)

    monkeypatch.setattr(NcnnCompiledRuntime, "manifest", and_keep)
    device = config(phone)
    operators = resnet_net.operators(resnet_net.largest(), open_runtime(device).fusion)
    lut = profile(operators, device, tmp_path, net=resnet_net)
    programs = [program for batch in manifests[0]["batches"] for program in batch["programs"]]
    assert max(len(program["steps"]) for program in programs) >= len(operators) / 2
    weights = {row.feature.id: sum(np.prod(w) for w in row.feature.weights) * 4 / 2**20 for row in lut}
    resident, workspace = lut.column("resident_weight_mb"), lut.column("workspace_mb")
    assert {feature.id for feature in operators} <= resident.keys() & workspace.keys()
    assert all(resident[f.id] >= 0.9 * weights[f.id] for f in operators)  # fp32 here; transformed ones are larger
    assert sum(resident[f.id] for f in operators) < 10 * sum(weights[f.id] for f in operators)


def test_peak_memory_of_a_network(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    layer = "InnerProduct fc 1 1 in0 out0 0=4096 1=0 2=4194304"
    (tmp_path / "model.ncnn.param").write_text(f"7767517\n2 2\nInput in0 0 1 in0\n{layer}\n")
    (tmp_path / "model.ncnn.bin").write_bytes(bytes(4 + 4 * 4194304))
    found = measure_memory({"fc": (tmp_path, (1, 1024))}, config(phone))
    assert 16 <= found["fc"].running_mb < 20
    assert found["fc"].loading_mb >= found["fc"].running_mb - 1
    assert abs(measure_baseline(config(phone))) < 2
    (tmp_path / "model.ncnn.param").write_text("nonsense")
    with pytest.raises(ProfilingError, match=r"(?s)the memory of fc was not measured.*ncnn cannot load its layers"):
        measure_memory({"fc": (tmp_path, (1, 1024))}, config(phone))


@pytest.mark.parametrize(
    ("kind", "after", "times"),
    [("drop", 30, 3), ("stall", 40, 3), ("corrupt", 30, 3), ("cut", 12, 5), ("damage", 0, 2), ("refuse", 0, 3)],
)
def test_nothing_is_lost_or_measured_twice(
    phone: AdbDaemon, runner: Path, tmp_path: Path, kind: str, after: int, times: int
) -> None:
    phone.faults.plan(kind, after=after, times=times, seconds=0.5)
    profile(OPERATORS, config(phone), tmp_path)
    assert phone.faults.happened[kind] == times
    assert visits(tmp_path) == ONCE


def after_a_batch(store: Path, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does something once, as soon as the first records are in the store."""
    append, done = Store.append, []

    def and_act(self: Store, records: list) -> None:  # type: ignore[type-arg]
        append(self, records)
        if not done:
            done.append(action())

    monkeypatch.setattr(Store, "append", and_act)


def test_a_restart_costs_nothing_that_was_measured(
    phone: AdbDaemon, runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = []

    def restart() -> None:
        phone.reboot(seconds=0.3)
        (journal,) = phone.phone.tmp.rglob("*.journal")
        journals.append(journal.read_text())
        for output in phone.phone.tmp.rglob("run.*/out"):
            output.write_text("")  # what was not on the disk

    after_a_batch(tmp_path, restart, monkeypatch)
    profile(OPERATORS, config(phone), tmp_path)
    assert journals[0].count('"event": "batch"') >= 1
    assert visits(tmp_path) == ONCE
    assert left_on(phone) == ["kept"]


def test_a_full_device_ends_the_run_and_the_next_goes_on(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    phone.faults.plan("full", times=99)
    with pytest.raises(DeviceError, match="no space is left on the device: remove something"):
        profile(OPERATORS, config(phone), tmp_path)
    phone.faults.plan("full", times=0)
    profile(OPERATORS, config(phone), tmp_path)
    assert visits(tmp_path) == ONCE


@pytest.fixture
def small_disk(phone: AdbDaemon) -> Iterator[Path]:
    """The phone's files on a file system of 32 MiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(phone.phone.tmp)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield phone.phone.tmp
    phone.phone.kill()
    subprocess.run(["umount", "--lazy", str(phone.phone.tmp)], check=True)


def test_a_device_that_fills_up_while_it_measures(
    phone: AdbDaemon, runner: Path, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = small_disk / "filler"

    def fill() -> None:
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    operators = [made(side) for made in (relu, conv) for side in range(4, 28)]  # three batches
    after_a_batch(tmp_path, fill, monkeypatch)
    with pytest.raises(DeviceError, match=r"no space.*MiB are free: remove something there"):
        profile(operators, config(phone), tmp_path / "store")
    measured = visits(tmp_path / "store")
    assert 0 < len(measured) < len(operators)
    filler.unlink()
    profile(operators, config(phone), tmp_path / "store")
    assert visits(tmp_path / "store") == sorted(feature.id for feature in operators)


def test_an_unknown_key_ends_the_run_and_the_next_goes_on(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    phone.prompt = None
    with pytest.raises(DeviceError, match="nobody accepted it"):
        profile(OPERATORS, config(phone), tmp_path)
    phone.prompt = 0.0
    profile(OPERATORS, config(phone), tmp_path)
    assert visits(tmp_path) == ONCE


def leave_unread(phone: AdbDaemon, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose device goes away for too long; the phone works on by itself until all is measured."""
    transports: list[AdbTransport] = []

    def opened(device: DeviceConfig) -> AdbTransport:
        transports.append(AdbTransport(device, IMPATIENT))
        return transports[-1]

    def go_away() -> None:
        phone.stop()
        transports[-1].shell.patience = replace(IMPATIENT, lost=0.5)

    monkeypatch.setitem(TRANSPORTS, "adb", opened)
    with monkeypatch.context() as patch:
        after_a_batch(store, go_away, patch)
        with pytest.raises(Exception, match="what was measured is kept, run again to go on"):
            profile(OPERATORS, config(phone), store)
    (journal,) = phone.phone.tmp.rglob("*.journal")
    while journal.read_text().count('"event": "batch"') < 2:
        time.sleep(0.05)
    assert visits(store) != ONCE
    phone.start()


def test_a_device_that_goes_away_and_the_next_run_goes_on(
    phone: AdbDaemon, runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_unread(phone, tmp_path, monkeypatch)
    monkeypatch.setattr(Session, "send", None)  # nothing is measured again
    profile(OPERATORS, config(phone), tmp_path)
    assert visits(tmp_path) == ONCE
    assert left_on(phone) == ["kept"]


def test_a_missing_runner_is_named_before_work(
    phone: AdbDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AUTOTAILOR_RUNNER", str(tmp_path / "nothing"))
    with pytest.raises(DeviceError, match=r"phone: the compiled runner is missing at .*build it with: make runner"):
        check(config(phone))


PIPELINE = """
import logging, sys
from pathlib import Path
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import DeviceConfig, profile
logging.basicConfig(level=logging.WARNING, format="%(message)s")
address, store, first, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
shapes = [(1, 8, side, side) for side in range(first, last)]
device = {"name": "phone", "transport": "adb", "address": address, "warmup": 1, "evict_mb": 0}
device |= {"precision_target": 0.9, "drift": 10, "min_minutes": 0}
operators = [OperatorFeature("Relu", (shape,), (shape,)) for shape in shapes]
profile(operators, DeviceConfig.from_section(device), store)
"""


def pipeline(phone: AdbDaemon, store: Path, first: int, last: int) -> subprocess.Popen[str]:
    """A process that profiles some operators."""
    environment = {**os.environ, "TMPDIR": str(store.parent), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PIPELINE, phone.address, str(store), str(first), str(last)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def appears(phone: AdbDaemon, pattern: str) -> None:
    """Waits for a file on the phone."""
    deadline = time.monotonic() + 300
    while not list(phone.phone.tmp.rglob(pattern)):
        assert time.monotonic() < deadline, f"no {pattern}"
        time.sleep(0.02)


def test_two_pipelines_on_one_device(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    with pipeline(phone, tmp_path / "store", 4, 8) as first:
        appears(phone, "*.journal")
        first.send_signal(signal.SIGSTOP)
        with pipeline(phone, tmp_path / "store", 6, 10) as second:
            assert second.stderr is not None
            said = second.stderr.readline()
            first.send_signal(signal.SIGCONT)
            assert second.wait(300) == first.wait(300) == 0
    assert f"device phone is in use by process {first.pid} of " in said
    assert "waiting until it is free" in said
    assert len(visits(tmp_path / "store")) == len(set(visits(tmp_path / "store"))) == 6


def test_a_killed_run_is_finished_by_the_next(phone: AdbDaemon, runner: Path, tmp_path: Path) -> None:
    with pipeline(phone, tmp_path / "store", 4, 24) as first:
        appears(phone, "*.journal")
        first.send_signal(signal.SIGKILL)
    with pipeline(phone, tmp_path / "store", 4, 24) as second:
        said = second.communicate(timeout=300)[1]
    assert second.returncode == 0, said
    assert len(visits(tmp_path / "store")) == len(set(visits(tmp_path / "store"))) == 20
    assert left_on(phone) == ["kept"]


def test_over_ssh(board: SshServer, runner: Path, tmp_path: Path) -> None:
    section = {"name": "board", "transport": "ssh", "address": board.address, "folder": str(tmp_path / "files")}
    device = DeviceConfig.from_section({**section, "precision_target": 0.9, "drift": 10, "min_minutes": 0})
    check(device)
    profile(OPERATORS[:3], device, tmp_path / "store")
    assert visits(tmp_path / "store") == sorted(feature.id for feature in OPERATORS[:3])
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["kept"]
