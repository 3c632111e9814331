"""The compiled runner: bad fragments, crashes, resuming after SIGKILL, whole networks.

Each test runs with the host's binary, and with that for aarch64 under QEMU.
"""

import json
import platform
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import autotailor
from autotailor.profiling import DeviceConfig, ProfilingError, open_runtime
from autotailor.profiling.errors import DeviceError
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.networks.validation import input_shape
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.runner.binary import runner_binary, runner_target
from autotailor.profiling.runtimes.runner.manifest import manifest_text
from device.emulation import QEMU, needed
from device.runners import built

RUNTIME = open_runtime(DeviceConfig.from_section({"name": "test", "warmup": 1, "evict_mb": 0}))
HELPERS = (RUNTIME.replicas(RUNTIME.anchor()), RUNTIME.sink(), RUNTIME.harness())
BROKEN = "7767517\n2 2\nInput in0 0 1 in0\nNoSuchLayer x 1 1 in0 out0\n"


@pytest.fixture(params=["host", "aarch64"])
def command(request: pytest.FixtureRequest) -> list[str]:
    binary = str(built(request.param))
    return [binary] if request.param == "host" else [needed(QEMU, "qemu-user-static"), binary]


def written(path: Path, *batches: tuple[Program, ...], seconds: float = 0.01, **settings: object) -> str:
    each = [
        {"seconds": seconds, "least_passes": 4, "blocks": 4, "programs": [p.to_manifest() for p in batch]}
        for batch in batches
    ]
    path.write_text(manifest_text({"settings": RUNTIME.settings() | settings, "batches": each}))
    return str(path)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def ran(command: list[str], *words: str) -> list[dict[str, Any]]:
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return lines(done.stdout)


def test_a_line_break_in_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfilingError, match="line break"):
        written(tmp_path / "manifest", (Program("a\nb", "", ((4,),), "out0"),))


def test_bad_fragments_are_named_and_the_others_measured(command: list[str], tmp_path: Path) -> None:
    bad = (Program("layer", BROKEN, ((4,),), "out0"), Program("blob", HELPERS[2].param, ((4,),), "nothing"))
    found = ran(command, written(tmp_path / "manifest", (*bad, *HELPERS)))
    assert {line["key"] for line in found if line["event"] == "failed"} == {"layer", "blob"}
    measured = {line["key"]: line for line in found if line["event"] == "program"}
    assert set(measured) == {program.key for program in HELPERS}
    assert len(measured[HELPERS[0].key]["long"]) == 4
    assert min(measured[HELPERS[0].key]["long"]) > 0
    sink = measured[HELPERS[1].key]
    assert len(sink["short"]) == len(sink["long"]) == 4
    assert min(*sink["short"], *sink["long"]) > 0
    assert found[-2]["event"] == "batch"
    assert set(found[-2]["before"]) == {"khz", "celsius"}
    assert found[-1] == {"event": "done"}


def test_a_network_is_timed_operator_by_operator(
    command: list[str], tmp_path: Path, resnet_net: autotailor.SuperNet
) -> None:
    subnet = resnet_net.smallest()
    sequence = resnet_net.sequence(subnet, RUNTIME.fusion)
    program = RUNTIME.in_place(subnet.id, sequence, input_shape(resnet_net, subnet)[1:], ())
    assert program is not None
    found = ran(command, written(tmp_path / "manifest", (program,)))
    (line,) = [line for line in found if line["event"] == "program"]
    assert [len(times) for times in line["steps"]] == [4] * len(sequence)
    assert all(time > 0 for times in line["steps"] for time in times)
    assert sum(sorted(times)[1] for times in line["steps"]) > 0.3 * sorted(line["long"])[1]


def test_a_network_settles_before_it_is_timed(
    command: list[str], tmp_path: Path, resnet_net: autotailor.SuperNet
) -> None:
    subnet, settle_ms = resnet_net.smallest(), 200.0
    sequence = resnet_net.sequence(subnet, RUNTIME.fusion)
    program = RUNTIME.in_place(subnet.id, sequence, input_shape(resnet_net, subnet)[1:], ())
    assert program is not None
    (line, batch) = (
        line
        for line in ran(command, written(tmp_path / "manifest", (program,), settle_ms=settle_ms))
        if line["event"] in ("program", "batch")
    )
    assert batch["seconds"] >= line["passes"] * settle_ms / 1e3


def test_after_sigkill_no_finished_batch_is_measured_again(command: list[str], tmp_path: Path) -> None:
    manifest, journal = written(tmp_path / "manifest", *[HELPERS] * 4, seconds=0.4), tmp_path / "journal"
    with subprocess.Popen([*command, manifest, str(journal)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if '"event": "batch"' in line:
                break
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    held = journal.read_text()
    with journal.open("a") as file:
        file.write('{"event": "program", "ba')  # half a line
    found = ran(command, manifest, str(journal))
    assert journal.read_text().startswith(held)
    assert found[:-1] == lines(journal.read_text())[1:]
    assert [line["batch"] for line in found if line["event"] == "batch"] == [0, 1, 2, 3]


def test_a_crash_costs_the_program_that_ran(command: list[str], tmp_path: Path) -> None:
    manifest = written(tmp_path / "manifest", HELPERS, seconds=1.0)
    with subprocess.Popen([*command, manifest], stdout=subprocess.PIPE, text=True) as process:
        while not (children := psutil.Process(process.pid).children()):
            time.sleep(0.01)
        time.sleep(0.5)
        children[0].send_signal(signal.SIGKILL)
        found = lines(process.communicate(timeout=300)[0])
    failed = [line for line in found if line["event"] == "failed"]
    assert [line["reason"] for line in failed] == ["the runtime crashed (signal 9)"]
    measured = {line["key"] for line in found if line["event"] == "program"}
    assert measured == {program.key for program in HELPERS} - {failed[0]["key"]}
    assert found[-1] == {"event": "done"}


def test_a_session_measures_through_it() -> None:
    built("host")
    records: list[Record] = []
    broken = Program("broken", BROKEN, ((4,),), "out0")
    with Session(DeviceConfig.from_section({"name": "compiled", "runtime": "ncnn-compiled"})) as session:
        failures = session.measure([Batch((session.runtime.harness(), broken), 0.1)], records.extend)
        assert session.fingerprint.facts["runtime"]["runner"]["ncnn"]
        first, records = records[:], []
        session.measure([Batch((session.runtime.harness(), broken), 0.1)], records.extend)
        assert first != records, "a second visit measures anew"
    assert failures == {"broken": "ncnn cannot load its layers"}
    assert {record.key for record in records} == {session.anchor.key, "harness"}
    assert records[0].anchor_ms > 0


def test_a_missing_binary_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUTOTAILOR_RUNNER", str(tmp_path / "nothing"))
    with pytest.raises(DeviceError, match="nothing: build it with: make runner"):
        runner_binary("compiled", {"system": platform.system(), "machine": platform.machine()})


@pytest.mark.parametrize(
    ("system", "machine", "target"),
    [(platform.system(), platform.machine(), "host"), ("Linux", "aarch64", "aarch64"), ("Linux", "arm64", "aarch64")],
)
def test_the_processor_decides_the_binary(system: str, machine: str, target: str) -> None:
    wanted = "host" if (system, machine) == (platform.system(), platform.machine()) else target
    assert runner_target("board", {"system": system, "machine": machine}) == wanted


@pytest.mark.parametrize(("system", "machine"), [("Linux", "armv7l"), ("Linux", "riscv64"), ("OpenBSD", "arm64")])
def test_a_processor_that_nothing_is_built_for(system: str, machine: str) -> None:
    with pytest.raises(DeviceError, match=f"board: it is a {system} on {machine}.*src/runner/build.py"):
        runner_target("board", {"system": system, "machine": machine})


def test_a_whole_network_is_timed(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "net.param").write_text(
        "7767517\n3 3\nInput in0 0 1 in0\nInnerProduct fc 1 1 in0 a 0=3 1=1 2=12\nReLU r 1 1 a out0\n"
    )
    (tmp_path / "net.bin").write_bytes(bytes(4 + 12 * 4 + 3 * 4))
    files = {"param_path": str(tmp_path / "net.param"), "bin_path": str(tmp_path / "net.bin")}
    missing = Program("missing", None, ((4,),), "out0", param_path=str(tmp_path / "no.param"))
    batch = (Program("net", None, ((4,),), "out0", **files), missing)
    found = ran(command, written(tmp_path / "manifest", batch))
    assert [line["key"] for line in found if line["event"] == "program"] == ["net"]
    assert [line["key"] for line in found if line["event"] == "failed"] == ["missing"]


def test_parts_are_weighed(command: list[str], tmp_path: Path) -> None:
    layer = "InnerProduct fc 1 1 in0 out0 0=1024 1=0 2=1048576"
    heavy = Program("heavy", f"7767517\n2 2\nInput in0 0 1 in0\n{layer}\n", ((1024,),), "out0")
    broken = Program("broken", BROKEN, ((4,),), "out0")
    program = replace(HELPERS[2], key="whole", parts=(heavy, broken))
    found = ran(command, written(tmp_path / "manifest", (*HELPERS, program)))
    (weighed,) = [line for line in found if line["event"] == "weighed"]
    assert weighed["key"] == "heavy"
    assert weighed["workspace_mb"] >= 0
    assert 1.9 < weighed["weights_mb"] < 8.5  # 4 MiB in single precision, half in half; ncnn keeps a copy of some
    assert [line["key"] for line in found if line["event"] == "failed"] == ["broken"]
    assert "whole" in {line["key"] for line in found if line["event"] == "program"}


def test_a_manifest_cut_off_is_refused(command: list[str], tmp_path: Path) -> None:
    path = Path(written(tmp_path / "manifest", HELPERS))
    path.write_text(path.read_text()[:-4])
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cut off" in done.stderr
