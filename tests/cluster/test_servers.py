"""The servers themselves: nothing of them outlives the tests."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cluster.slurm import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
HOLD = """
import sys, time
from pathlib import Path
from cluster import slurm

with slurm.running(Path(sys.argv[1])) as cluster:
    cluster.ask("sbatch", "--output=/dev/null", "--wrap", "sleep 3599 & sleep 3599")
    slurm.wait_for(lambda: cluster.jobs()[0].state == "RUNNING", "the job runs")
    time.sleep(2)
    print("runs", flush=True)
    time.sleep(3599)
"""


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_servers_and_jobs_end_with_tests_that_are_killed(short: Path) -> None:
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with psutil.Popen([sys.executable, "-c", HOLD, str(short)], stdout=subprocess.PIPE, text=True, env=given) as tests:
        assert tests.stdout.readline().strip() == "runs"
        started = tests.children(recursive=True)
        names = [process.name() for process in started]
        assert {"munged", "slurmctld"} <= set(names)
        assert [names.count(name) for name in ("slurmd", "slurmstepd", "sleep")] == [2, 1, 2]
        tests.kill()
    wait_for(lambda: not any(map(alive, started)), "all processes end", 60)
