"""Driving a pool through phases of load."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from autotailor.serving import PoolError, Service
from autotailor.serving.demo.drive import Burdens, drive, phases, pictures_for, pinned_to_one_core, unloaded_ms
from pools import tiny_pool
from served import serve_binary


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    serve_binary()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service.of(tiny_pool(tmp_path / "pool").folder, 5.0) as made:
        yield made


def test_each_phase_has_its_burdens_and_its_time(service: Service) -> None:
    with Burdens(30) as burdens:
        samples = []
        for sample in drive(service, burdens, phases(0.6, (0, 2, 1)), pictures_for(service)):
            assert len(burdens.processes) == sample.burdens
            samples.append(sample)
        assert burdens.processes == []
    assert [count for count, _ in groupby(sample.burdens for sample in samples)] == [0, 2, 1]
    assert samples[0].seconds < 0.1
    assert all(before.seconds < after.seconds for before, after in pairwise(samples))
    assert service.status()["counters"]["inferences"] == len(samples)


def test_a_rate_leaves_pauses(service: Service) -> None:
    with Burdens(30) as burdens:
        samples = list(drive(service, burdens, phases(0.5, (0,)), pictures_for(service), rate=20.0))
    assert 5 <= len(samples) <= 10
    assert all(sample.seconds >= number / 20 for number, sample in enumerate(samples))


def test_the_largest_member_is_timed_alone(tmp_path: Path) -> None:
    with Service.of(tiny_pool(tmp_path / "pool").folder, 1e-6) as service:
        assert unloaded_ms(service, pictures_for(service)[0]) > 0
        counters = service.status()["counters"]
    assert counters["by_member"]["member_02"] >= 60
    assert counters["inferences"] == sum(counters["by_member"].values())


def test_a_member_that_cannot_be_loaded_ends_the_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.serving.demo.drive.WAIT_S", 0.2)
    pool = tiny_pool(tmp_path / "pool")
    with Service.of(pool.folder, 1e-6) as service:
        with (pool.folder / "weights.bin").open("r+b") as stream:
            stream.truncate(4)
        with pytest.raises(PoolError, match=r"member_02 is not loaded within 0\.2 s"):
            unloaded_ms(service, pictures_for(service)[0])


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_plan_takes_time(seconds: float) -> None:
    with pytest.raises(PoolError, match="demonstration"):
        phases(seconds)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(process: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while is_running(process) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_running(process)


@pytest.mark.parametrize("kind", ["compute", "memory"])
def test_as_many_run_as_were_asked_for_and_none_afterwards(kind: str) -> None:
    with Burdens(30, kind) as burdens:
        burdens.set(2)
        first = burdens.processes
        assert all(is_running(process) for process in first)
        burdens.set(1)
        assert burdens.processes == first[:1]
        assert not is_running(first[1])
    assert burdens.processes == []
    assert not is_running(first[0])


def test_a_burden_ends_by_itself() -> None:
    with Burdens(0.2) as burdens:
        burdens.set(1)
        assert ends(burdens.processes[0])


def test_a_burden_ends_with_a_process_that_is_killed() -> None:
    program = (
        "import time; from autotailor.serving.demo.drive import Burdens; b = Burdens(60); b.set(1); "
        "print(b.processes[0], flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        burden = int(parent.stdout.readline())
        assert is_running(burden)
        parent.send_signal(signal.SIGKILL)
    assert ends(burden)


def test_ctrl_c_ends_burdens_without_a_traceback_of_theirs() -> None:
    program = (  # a test that runs in the background of a shell inherits that SIGINT is ignored
        "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from autotailor.serving.demo.drive import Burdens\n"
        "try:\n"
        "    with Burdens(60) as b:\n"
        "        b.set(2); time.sleep(0.5); print(*b.processes, flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt: pass"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        burdens = [int(number) for number in parent.stdout.readline().split()]
        assert len(burdens) == 2
        os.killpg(parent.pid, signal.SIGINT)  # what a terminal does
        assert parent.communicate(timeout=20) == ("", "")
    assert all(ends(burden) for burden in burdens)


def test_burdens_share_the_core_of_the_thread_that_starts_them() -> None:
    before = os.sched_getaffinity(0)
    with pinned_to_one_core() as core, Burdens(30) as burdens:
        burdens.set(1)
        assert os.sched_getaffinity(0) == os.sched_getaffinity(burdens.processes[0]) == {core}
    assert os.sched_getaffinity(0) == before


def test_too_many_burdens_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(PoolError, match="17 burdens"):
        Burdens(1).set(17)
    with pytest.raises(PoolError, match="'disk' is unknown"):
        Burdens(1, "disk")
