"""A Slurm of its own on this machine: a controller, two nodes and munge, all in one folder and on loopback.

    python tests/cluster/servers.py FOLDER

The program says ``ready`` when both nodes take jobs. When its standard input ends, it ends servers, jobs, and all
that the jobs have started. The input ends with the process that has started the program, however that process ends.

Debian's programs run as they are, without systemd, cgroups, accounting, or a file below ``/etc``. Both nodes are this
machine: each has a name, a port and a daemon of its own. They promise more than the machine may have, so that jobs fit
that are sized for a real cluster (``conf/cluster/slurm.yaml``).
"""

import contextlib
import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

NODES = ("n1", "n2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
PLACES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where Debian has daemons, in case that the PATH of a user lacks these folders."""
SET_CHILD_SUBREAPER = 36
"""Of ``prctl``: processes whose parent has ended become children of this process."""
CONF = """\
ClusterName=autotailor
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# A job that is queued again waits until its credential has expired: 120 s otherwise.
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldDebug=verbose
SlurmdDebug=verbose
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=20
# Finished jobs are shown to the end: there is no accounting.
MinJobAge=36000
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
# Where cgroups are, the kernel kills a job that takes too much memory. Here Slurm looks each second.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
Licenses=device_host:1
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=64000 State=UNKNOWN"


def find(program: str) -> str | None:
    """The path of a program of Slurm or munge; None where it is missing."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *PLACES]))


def environment(folder: Path) -> dict[str, str]:
    """For programs that submit jobs, and by inheritance for the jobs themselves.

    The executor takes SLURM_CONF from the environment of ``srun``. Therefore a script in the cluster's folder stands in
    front of ``srun`` in the PATH, and says where the configuration is.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH_", "SRUN_"))}
    path = os.pathsep.join([str(folder / "bin"), kept.get("PATH", os.defpath), *PLACES])
    return {**kept, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}


def free_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in found]


def write(folder: Path) -> None:
    """Writes the configuration, the key of munge, and the script in front of ``srun``."""
    host, (port, *ports) = socket.gethostname().partition(".")[0], free_ports(1 + len(NODES))
    nodes = [NODE.format(name=name, host=host, port=own) for name, own in zip(NODES, ports, strict=True)]
    conf = CONF.format(folder=folder, host=host, port=port, user=getpass.getuser(), nodes="\n".join(nodes))
    folder.chmod(0o755)  # munged refuses a folder that other users cannot enter
    (folder / "slurm.conf").write_text(conf)
    for name in ("state", "bin", *(f"spool.{node}" for node in NODES)):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {find("srun")} "$@"\n')
    srun.chmod(0o755)


def commands(folder: Path) -> dict[str, list[str]]:
    """The servers by name, each with its command, in the order of their start."""
    conf = ["-f", str(folder / "slurm.conf")]
    files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munge = [f"--{option}={folder}/munge.{end}" for option, end in files.items()]
    return {
        "munged": [str(find("munged")), "--foreground", *munge],
        "slurmctld": [str(find("slurmctld")), "-D", "-c", *conf],
        **{node: [str(find("slurmd")), "-D", "-N", node, *conf] for node in NODES},
    }


def serve(folder: Path) -> None:
    """Starts all servers, and returns when both nodes take jobs; exits with a message if they do not."""
    given = environment(folder)
    started = {}
    for name, command in commands(folder).items():
        with (folder / f"{name}.txt").open("wb") as said:
            started[name] = subprocess.Popen(command, env=given, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        if name == "munged":
            until(lambda: (folder / "munge.socket").exists() or started["munged"].poll() is not None, 30)
    asks = [str(find("sinfo")), "--noheader", "--Node", "--format=%T"]

    def ready() -> bool:
        states = subprocess.run(asks, env=given, capture_output=True, text=True, check=False).stdout.split()
        return states == ["idle"] * len(NODES)

    if not until(lambda: ready() or any(server.poll() is not None for server in started.values()), 120) or not ready():
        logs = sorted([*folder.glob("*.txt"), *folder.glob("*.log")])
        sys.exit("Slurm does not start:\n" + "\n".join(f"--- {log.name}\n{log.read_text()[-1500:]}" for log in logs))


def until(found: Callable[[], object], seconds: float) -> bool:
    """Waits until something is so; False if it is not so in time."""
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def end_all() -> None:
    """Kills all that this process has started, and all that these have started, until nothing is left."""
    while children := [child for child in psutil.Process().children(recursive=True) if child.is_running()]:
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=5)


def main() -> None:
    """Serves until standard input ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed; this needs Linux")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the tests, whose end ends the standard input
    folder = Path(sys.argv[1])
    try:
        write(folder)
        serve(folder)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # processes that have become children leave nothing behind
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        end_all()


if __name__ == "__main__":
    main()
