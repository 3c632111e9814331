"""Starts the workflow in the current folder: Snakemake as a process of its own, which this package never imports."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotailor.project import foreground, places
from autotailor.project.folder import ProjectError

SNAKEFILE = "Snakefile"


def workflow_command(
    config: Mapping[str, object], options: Sequence[str] = (), passed: Sequence[str] = ()
) -> list[str]:
    """The command that starts the workflow.

    Args:
        config: what ``snakemake --config`` takes.
        options: of Snakemake, as this package sets them.
        passed: arguments of the user's for Snakemake, which may name targets.
    """
    launcher = [sys.executable, str(places.WORKFLOW / "launch.py"), "--snakefile", str(places.WORKFLOW / SNAKEFILE)]
    settings = [f"{key}={_written(value)}" for key, value in config.items()]
    # The user's arguments come before --config, which would take in a target that follows.
    return [*launcher, *passed, *options, *(["--config", *settings] if settings else [])]


def start(config: Mapping[str, object], options: Sequence[str] = (), passed: Sequence[str] = ()) -> int:
    """Runs the workflow to its end; returns Snakemake's exit code. The arguments are those of ``workflow_command``."""
    return foreground.run(workflow_command(config, options, passed), env=environment())


def show_end(model: str, device: str) -> int:
    """Prints the front of a finished run, and where its report is; returns the exit code."""
    command = [sys.executable, str(places.WORKFLOW / "finish.py"), model, device]
    return foreground.run(command, env=environment())


def environment() -> dict[str, str]:
    """The environment in which this Python's own programs (``snakemake``) come first."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join(filter(None, [programs, os.environ.get("PATH")]))}


def profile(name: str) -> Path:
    """The folder of a profile of Snakemake.

    Args:
        name: a folder, or the name of a profile in ``profiles`` of the current folder, or of one of autotailor's.

    Raises:
        ProjectError: there is none.
    """
    own = places.WORKFLOW / "profiles"
    candidates = (Path(name), Path("profiles") / name, own / name, own / Path(name).name)
    for folder in candidates:
        if any(folder.glob("profile*.yaml")) or any(folder.glob("config*.yaml")):
            return folder
    known = ", ".join(sorted(path.name for path in own.iterdir() if path.is_dir()))
    raise ProjectError(f"--profile {name}: no such profile; name a folder with profile.yaml, or one of {known}")


def _written(value: object) -> str:
    """A value as Snakemake reads it from its command line: lists as YAML, which JSON is, too."""
    return value if isinstance(value, str) else json.dumps(value)
