"""Processes that train together are started, and what becomes of one of them is said in one sentence."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autotailor.compute import launch
from autotailor.compute.launch import LaunchError, PeerLostError, Processes

PROGRAM = """
import os, signal, sys, time
from autotailor.compute import launch
from autotailor.ir.errors import AutoTailorError

if not launch.is_worker():
    try:
        launch.launch(launch.Processes({each}, {nodes}), "test")
    except AutoTailorError as error:
        sys.exit(f"said: {{error}}")
    os.write(1, b"all ended well\\n")
    sys.exit(0)
rank = launch.rank()
os.write(1, f"worker {{rank}} of {{os.environ['WORLD_SIZE']}}\\n".encode())  # one write keeps a line whole
try:
    {body}
except Exception as error:
    launch.tell(error)
    sys.exit(launch.status_of(error))
"""


def run(folder: Path, body: str, each: int = 2, nodes: int = 1, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program whose workers have a body."""
    program = folder / "program.py"
    program.write_text(PROGRAM.format(each=each, nodes=nodes, body=textwrap.indent(body, "    ").strip()))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    command = [sys.executable, str(program)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)


def test_a_section_says_how_many_processes_there_are() -> None:
    assert Processes.of(None) == Processes.of({"epochs": 3}) == Processes(1, 1, "cpu")
    assert Processes.of({"processes": 2, "nodes": 3, "accelerator": "auto"}).count == 6
    assert (launch.is_worker(), launch.rank()) == (False, 0)


def test_all_workers_run_the_program(tmp_path: Path) -> None:
    done = run(tmp_path, "pass")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["all ended well", "worker 0 of 2", "worker 1 of 2"]


LOST = "from autotailor.compute.launch import PeerLostError\nraise PeerLostError('gone')"
WAITS = f"""
import contextlib, psutil
from pathlib import Path
other = Path(__file__).with_name("other")
if rank == 0:
    while not other.exists() or not other.read_text().endswith("."):
        time.sleep(0.02)
    with contextlib.suppress(psutil.NoSuchProcess):
        ended = psutil.Process(int(other.read_text().rstrip(".")))
        while ended.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.02)
{textwrap.indent(LOST, "    ")}
other.write_text(f"{{os.getpid()}}.")
"""
"""The first process loses its connection once the other one has ended."""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "test: process 1 of 2 (from 0) was killed by SIGKILL, most often"),
        ("raise AutoTailorError('bad picture')", "test: process 1 of 2 (from 0) failed: AutoTailorError: bad picture"),
    ],
    ids=["killed", "failed"],
)
def test_the_process_that_failed_first_is_named(tmp_path: Path, body: str, says: str) -> None:
    done = run(tmp_path, WAITS + body)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def failed(status: int, message: object = "", timestamp: int = 0) -> Any:
    """A failure as torchrun reports it."""
    return SimpleNamespace(exitcode=status, message=message, timestamp=timestamp)


@pytest.mark.parametrize(
    ("failures", "says"),
    [
        (
            {0: failed(75), 1: failed(75)},
            "process 0 of 2 (from 0) has lost the connection to a process on another machine",
        ),
        ({0: failed(75, "", 1), 1: failed(1, "of PyTorch", 2)}, "process 1 of 2 (from 0) failed: of PyTorch"),
        ({0: failed(-15), 1: failed(1, {"message": "bad"})}, "process 1 of 2 (from 0) failed: bad"),
        ({0: failed(1), 1: failed(-11)}, "process 1 of 2 (from 0) was killed by SIGSEGV, and the others"),
    ],
    ids=["lost", "failed", "ended by its agent", "crashed"],
)
def test_the_cause_is_told_from_what_follows_from_it(failures: dict[int, Any], says: str) -> None:
    with pytest.raises(LaunchError) as error:
        launch._explain(failures, 2, "test")
    assert says in str(error.value)


@pytest.mark.parametrize("status", [1, 143, 130])
def test_what_the_first_process_has_said_is_not_repeated(status: int) -> None:
    with pytest.raises(SystemExit) as ended:
        launch._explain({0: failed(status, "said"), 1: failed(75)}, 2, "test")
    assert ended.value.code == status


SRUN = """#!/bin/bash
echo "step nodes: $SLURM_NNODES, job: $SLURM_JOB_ID" >> "$ASKED"
while [[ $1 == --* ]]; do echo "$1" >> "$ASKED"; shift; done
"$@" & first=$!
"$@" & second=$!
wait $first && wait $second
"""


def test_a_job_of_slurm_starts_an_agent_on_each_node(tmp_path: Path) -> None:
    """Both nodes are this machine."""
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(tmp_path / "asked"), "SLURM_JOB_ID": "4711"}
    variables |= {"SLURM_NNODES": "1", "SLURM_CPUS_PER_TASK": "3"}  # of the step in which the rule runs
    done = run(tmp_path, "pass", each=1, nodes=2, **variables)
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if "worker" in line) == ["worker 0 of 2", "worker 1 of 2"]
    said, *options = (tmp_path / "asked").read_text().splitlines()
    assert {"--nodes=2", "--ntasks=2", "--cpus-per-task=3"} <= set(options)
    assert said == "step nodes: , job: 4711"


def test_several_nodes_need_a_job_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(LaunchError, match="nodes 2 need a job of Slurm"):
        launch.launch(Processes(1, 2), "test")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LaunchError, match="no srun in its PATH"):
        launch.launch(Processes(1, 2), "test")


def test_each_process_needs_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(LaunchError, match=r"2 processes need a GPU each, and machine .* has 1; set processes to 1"):
        launch.launch(Processes(2, 1, "auto"), "test")


def test_a_lost_peer_has_a_status_of_its_own() -> None:
    assert (launch.status_of(PeerLostError("gone")), launch.status_of(LaunchError("other"))) == (75, 1)
