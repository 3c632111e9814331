"""Burdens: they run, they compete on the same core, and they always end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotailor.serving import PoolError
from autotailor.serving.demo.burden import Burdens, pinned_to_one_core


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
        "import time; from autotailor.serving.demo.burden import Burdens; b = Burdens(60); b.set(1); "
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
        "from autotailor.serving.demo.burden import Burdens\n"
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
