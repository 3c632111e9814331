"""Starts the processes that train together: torchrun on this machine, or on every machine of a job of Slurm.

A rule's script starts itself anew in each process. Its process has one of three roles::

    Snakemake's       starts the agents: one on this machine, or by ``srun`` one on each machine
    an agent          ``torch.distributed.launcher`` starts the workers of its machine, and ends all when one has ended
    a worker          trains

With one machine the first process is the agent, too.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autotailor.ir.errors import AutoTailorError

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

logger = logging.getLogger(__name__)
AGENT = "AUTOTAILOR_RENDEZVOUS"
"""Variable that tells an agent where agents meet, as host:port."""
PORTS = 20_000, 20_000
"""First port and number of ports at which the agents of a job meet, chosen by the number of the job."""
OF_THE_JOB = ("SLURM_JOB_ID", "SLURM_CONF", "SLURM_CLUSTER_NAME")
"""Variables of Slurm that hold for a job as a whole."""
SHUTDOWN_SECONDS = 60
"""Time in which workers finish their step and write a checkpoint when they are told to end."""
LOST = 75
"""Exit status of a worker that ended because another one had: EX_TEMPFAIL of sysexits.h."""


class LaunchError(AutoTailorError):
    """Processes that train together cannot be started, or one of them has failed."""


class PeerLostError(AutoTailorError):
    """Another process of the training has ended; what that process says is the cause."""


@dataclass(frozen=True)
class Processes:
    """How many processes a rule asks for.

    Attributes:
        each: on each machine.
        nodes: machines.
        accelerator: name of what each process computes on (``accelerator``); each process gets a GPU of its own.
    """

    each: int = 1
    nodes: int = 1
    accelerator: str = "cpu"

    @classmethod
    def of(cls, section: Mapping[str, Any] | None) -> Processes:
        """Of a rule's section of the configuration; one process where the section does not say."""
        values = section or {}
        return cls(int(values.get("processes", 1)), int(values.get("nodes", 1)), str(values.get("accelerator", "cpu")))

    @property
    def count(self) -> int:
        """Number of all processes."""
        return self.each * self.nodes


def is_worker() -> bool:
    """Whether this process is one of those that train together."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def rank() -> int:
    """Number of this process among those that train together; 0 for a process alone."""
    return int(os.environ["RANK"]) if is_worker() else 0


def launch(team: Processes, title: str) -> None:
    """Runs this program in so many processes, and returns when all have ended well.

    Args:
        team: how many.
        title: of messages.

    Raises:
        LaunchError: a process has ended with an error that it has not said itself, or was killed.
        SystemExit: a process has ended with an error that it has said, or all were told to end.
    """
    place = os.environ.get(AGENT)
    if team.nodes > 1 and place is None:
        _on_nodes(team, title)
    else:
        _agent(team, title, place)


def _on_nodes(team: Processes, title: str) -> None:
    """Starts this program as an agent on each machine of a job of Slurm."""
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        raise LaunchError(
            f"{title}: nodes {team.nodes} need a job of Slurm with so many nodes, and this process runs in none; run "
            f"with --profile slurm (of snakemake: --profile profiles/slurm), or set nodes to 1"
        )
    count = team.nodes
    place = f"{socket.gethostname()}:{PORTS[0] + int(job) % PORTS[1]}"
    command = [
        "srun",
        f"--nodes={count}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        "--overlap",
        "--kill-on-bad-exit",
    ]
    if cores := os.environ.get("SLURM_CPUS_PER_TASK"):
        command.append(f"--cpus-per-task={cores}")
    try:
        agents = subprocess.Popen([*command, sys.executable, *sys.argv], env={**_of_the_job(), AGENT: place})
    except FileNotFoundError as error:
        raise LaunchError(f"{title}: job {job} of Slurm has no srun in its PATH; nodes are started by srun") from error
    with _forwarding(agents.send_signal):
        status = agents.wait()
    if status:
        sys.exit(status if status > 0 else 128 - status)


def _of_the_job() -> dict[str, str]:
    """The environment without what Slurm says of the step in which this process runs.

    The executor of Snakemake runs a rule in a step on the first node alone. ``srun`` would take that node for all nodes
    of the job, and refuse to start an agent on others.
    """
    return {key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key in OF_THE_JOB}


@contextmanager
def _forwarding(send: Callable[[int], None]) -> Iterator[None]:
    """Within this context SIGTERM goes to another process, which ends this one by ending."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: send(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _agent(team: Processes, title: str, place: str | None) -> None:
    """Starts the workers of this machine, and waits for them."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # what happens is said here, in sentences
    each_has_gpu = _has_gpus(team, title)
    logger.info("%s: %d processes train together", title, team.count)
    with tempfile.TemporaryDirectory(prefix="autotailor-") as folder:
        config = LaunchConfig(
            min_nodes=team.nodes,
            max_nodes=team.nodes,
            nproc_per_node=team.each,
            run_id=f"autotailor-{place or os.getpid()}",
            rdzv_backend="c10d",
            rdzv_endpoint=place or "127.0.0.1:0",
            local_addr=None if place else "127.0.0.1",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=folder),
            shutdown_timeout=SHUTDOWN_SECONDS,
            virtual_local_rank=each_has_gpu,  # a worker sees its own GPU alone, under the name of the first one
        )
        try:
            elastic_launch(config, sys.executable)(*sys.argv)
        except SignalException as ended:
            sys.exit(128 + ended.sigval)
        except ChildFailedError as error:
            _explain(error.failures, team.count, title)


def _has_gpus(team: Processes, title: str) -> bool:
    """Whether the workers compute on CUDA.

    Raises:
        LaunchError: this machine has GPUs, and fewer than workers.
    """
    import torch

    if team.accelerator == "cpu" or not torch.cuda.is_available():
        return False
    if (count := torch.cuda.device_count()) < team.each:
        raise LaunchError(
            f"{title}: {team.each} processes need a GPU each, and machine {socket.gethostname()} has {count}; set "
            f"processes to {count}, or accelerator to cpu"
        )
    return True


def _explain(failures: Mapping[int, ProcessFailure], count: int, title: str) -> None:
    """Raises what the first of the failures was; later ones follow from it."""
    number, first = _cause(failures)
    told = {128 + signal.SIGTERM, 128 + signal.SIGINT}
    if first.exitcode in told:
        sys.exit(first.exitcode)
    who, remedy = (
        f"process {number} of {count} (from 0)",
        "run again, and the training goes on from its last checkpoint",
    )
    if first.exitcode < 0:
        name = signal.Signals(-first.exitcode).name
        why = ", most often because the machine's memory was exhausted" if name == "SIGKILL" else ""
        raise LaunchError(f"{title}: {who} was killed by {name}{why}, and the others were ended; {remedy}")
    if first.exitcode == LOST:
        raise LaunchError(f"{title}: {who} has lost the connection to a process on another machine; {remedy}")
    if number == 0:  # the first process has said it, on the console and in the log
        sys.exit(first.exitcode)
    message: Any = first.message  # what ``tell`` has left, or PyTorch's own text
    raise LaunchError(f"{title}: {who} failed: {message['message'] if isinstance(message, Mapping) else message}")


def _cause(failures: Mapping[int, ProcessFailure]) -> tuple[int, ProcessFailure]:
    """The failure from which the others followed: one by a signal, else the earliest of an error of its own."""

    def order(item: tuple[int, ProcessFailure]) -> tuple[int, int]:
        status = item[1].exitcode
        kind = 3 if status == -signal.SIGTERM else 0 if status < 0 else 2 if status == LOST else 1
        return kind, item[1].timestamp

    return min(failures.items(), key=order)


def tell(error: BaseException) -> None:
    """Leaves an error of this worker for its agent to say, as torchrun does."""
    if is_worker():
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)


def status_of(error: BaseException) -> int:
    """Exit status of a process that ends with an error."""
    return LOST if isinstance(error, PeerLostError) else 1
