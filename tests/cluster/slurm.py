"""A running cluster as tests use it: its environment, its jobs, its licences, and a node that fails."""

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from cluster import servers

INSTALL = "make test-cluster, or apt-get install slurmctld slurmd slurm-client munge"
END_SECONDS = 60


@dataclass(frozen=True)
class Job:
    """What the controller says of a job.

    Attributes:
        fields: as ``scontrol show job`` names them.
    """

    fields: dict[str, str]

    @property
    def number(self) -> str:
        return self.fields["JobId"]

    @property
    def rule(self) -> str:
        """The rule of Snakemake that the job runs; empty for other jobs."""
        return self.fields.get("Comment", "").removeprefix("rule_").partition("_wildcards")[0]

    @property
    def state(self) -> str:
        return self.fields["JobState"]

    @property
    def licence(self) -> str:
        """The licences that the job holds or waits for; empty for none."""
        return self.fields["Licenses"].replace("(null)", "")

    @property
    def time(self) -> tuple[datetime, datetime]:
        """Start and end."""
        start, end = (datetime.fromisoformat(self.fields[key]) for key in ("StartTime", "EndTime"))
        return start, end


@dataclass(frozen=True)
class Slurm:
    """A running cluster.

    Attributes:
        folder: of its configuration, state and logs.
        keeper: process from which all its servers and jobs descend.
    """

    folder: Path
    keeper: psutil.Popen

    @property
    def environment(self) -> dict[str, str]:
        """For programs that submit jobs; what their jobs need, too."""
        return servers.environment(self.folder)

    def ask(self, *command: str) -> str:
        """What a program of Slurm prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def jobs(self, rule: str | None = None) -> list[Job]:
        """All jobs since the start in the order of their submission, or those of one rule."""
        lines = self.ask("scontrol", "show", "job", "--oneliner").splitlines()
        found = [Job(dict(re.findall(r"(\S+?)=(\S*)", line))) for line in lines if line.startswith("JobId=")]
        return [job for job in sorted(found, key=lambda job: int(job.number)) if rule in (None, job.rule)]

    def steps(self, job: Job, node: str) -> set[str]:
        """The steps of a job that a node has run, by number."""
        said = (self.folder / f"slurmd.{node}.log").read_text()
        return set(re.findall(rf"launch task StepId={job.number}\.(\d+) request", said))

    def kill_node(self, node: str) -> None:
        """Kills a node as a power failure does: its daemon, its jobs, and all that the jobs have started there."""
        killed: set[psutil.Process] = set()
        while new := set(self._of_node(node)) - killed:
            for process in new:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGSTOP)  # no part of the node reports that another part has ended
            killed |= new
        for process in killed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _of_node(self, node: str) -> Iterator[psutil.Process]:
        for process in self.keeper.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                command, ancestors = process.cmdline(), process.parents()
                if "slurmd" in command[0] and node in command:
                    yield process
                elif process.environ().get("SLURMD_NODENAME") == node:
                    yield process
                    yield from (each for each in ancestors if each.cmdline()[0].startswith("slurmstepd"))


@contextmanager
def running(folder: Path) -> Iterator[Slurm]:
    """A cluster with its files in an empty folder."""
    command, pipe = [sys.executable, servers.__file__, str(folder)], subprocess.PIPE
    with psutil.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as keeper:
        try:
            if keeper.stdout.readline().strip() != "ready":
                raise AssertionError(keeper.stderr.read())
            yield Slurm(folder, keeper)
        finally:
            keeper.stdin.close()
            keeper.wait(END_SECONDS)


def wait_for(found: Callable[[], object], what: str, seconds: float = 300) -> None:
    """Waits until something is so; the test fails where it is not so in time."""
    assert servers.until(found, seconds), f"not within {seconds:.0f} s: {what}"


def missing() -> Sequence[str]:
    """Programs that this machine lacks."""
    return [program for program in servers.PROGRAMS if servers.find(program) is None]
