"""Asks Slurm for the licences of devices: a job that measures on a device holds one, so that no other job measures."""

import re
import subprocess
from collections.abc import Iterable, Mapping

from autotailor.config.names import ConfigError

COMMAND = ("scontrol", "show", "licenses", "--oneliner")
SECONDS = 60
"""Time in which Slurm answers."""


def check_licences(names: Iterable[str]) -> None:
    """Checks before any job that the cluster has one licence of each name.

    Raises:
        ConfigError: Slurm does not answer, or a licence is missing or can be held by two jobs at once. The message has
            the line for slurm.conf.
    """
    ordered = sorted(set(names))
    if not ordered:
        return
    declared = read_licences(_ask())
    missing = [name for name in ordered if name not in declared]
    if missing:
        line = ",".join([f"{name}:{total}" for name, total in declared.items()] + [f"{name}:1" for name in missing])
        raise ConfigError(
            f"cluster.licences: Slurm has no licence {', '.join(missing)}, which keeps a device from being measured by "
            f"two jobs at once; set this line in slurm.conf of the controller, and call `scontrol reconfigure`: "
            f"Licenses={line}"
        )
    for name in ordered:
        if declared[name] != 1:
            raise ConfigError(
                f"cluster.licences: Slurm has {declared[name]} licences {name}, and with another number than one the "
                f"device is not measured by one job at a time; write {name}:1 in the line Licenses= of slurm.conf, and "
                f"call `scontrol reconfigure`"
            )


def read_licences(text: str) -> Mapping[str, int]:
    """The number of licences by name, from what ``scontrol show licenses --oneliner`` prints."""
    return {name: int(total) for name, total in re.findall(r"LicenseName=(\S+)\s+Total=(\d+)", text)}


def _ask() -> str:
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError as error:
        raise ConfigError(
            "cluster.licences: this machine has no scontrol, and jobs are submitted where Slurm's commands are; run "
            "there, or without --profile slurm"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"cluster.licences: Slurm has not answered `{' '.join(COMMAND)}` in {SECONDS} s") from error
    if done.returncode:
        raise ConfigError(f"cluster.licences: `{' '.join(COMMAND)}` says: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
