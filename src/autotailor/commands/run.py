"""``autotailor run model=NAME device=NAME``: runs the workflow in the current folder.

Snakemake is a process of its own, which this package never imports.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from autotailor.project import foreground, places
from autotailor.project.folder import ProjectError

HINT = "; a parameter is written KEY=VALUE, and options of Snakemake stand behind --: autotailor run -- --keep-going"
"""What is said beside an option that a run does not have."""

SNAKEFILE = "Snakefile"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``run`` to the commands."""
    parser = commands.add_parser(
        "run",
        help="run the workflow in the current folder",
        usage="autotailor run [KEY=VALUE ...] [-n] [-c N] [--profile NAME] [-- OPTION ...]",
        description="Runs everything that is not done yet, from the trained network to the report. Without a model and "
        "a device, the embedded example runs on this computer. What stands behind -- goes to Snakemake as it is.",
    )
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="KEY=VALUE",
        help="model=NAME, device=NAME, cluster=NAME and recipe=NAME, files of conf; lut=FILE; keep=RULE; every other "
        "key is a parameter of the configuration (finetune.epochs=20) or another file of a group (data=cifar10)",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="say what would run")
    parser.add_argument("-c", "--cores", metavar="N", help="cores to use at most (all)")
    parser.add_argument(
        "--profile", metavar="NAME", help="a profile of Snakemake: a folder, or one of autotailor's (slurm)"
    )
    parser.set_defaults(run=run, passed=())


def split_passed(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divides a command line into the command's own arguments, and those for Snakemake behind ``--``."""
    given = list(arguments)
    if given[:1] != ["run"] or "--" not in given:
        return given, []
    place = given.index("--")
    return given[:place], given[place + 1 :]


def run(options: argparse.Namespace) -> int:
    """Runs the workflow; returns the exit code of Snakemake.

    Raises:
        ProjectError: an argument is none that a run takes.
        ConfigError: there is no such model, device or cluster.
    """
    config = read_settings(options.settings)
    check_names(config)
    if taken := {"--config", "-C", "--snakefile", "-s"} & {option.partition("=")[0] for option in options.passed}:
        raise ProjectError(f"-- {min(taken)}: a run sets this option itself; give KEY=VALUE before the --")
    own = ["--dry-run"] if options.dry_run else ["--quiet", "rules"]
    own += ["--cores", options.cores] if options.cores else []
    own += ["--profile", str(profile(options.profile))] if options.profile else []
    code = start(config, own, options.passed)
    if code or options.dry_run or options.passed:
        return code
    return show_end(str(config.get("model", "resnet_digits")), str(config.get("device", "host")))


def read_settings(settings: Sequence[str]) -> dict[str, object]:
    """What ``snakemake --config`` takes, from the arguments; keys that it does not know are overrides.

    Raises:
        ProjectError: an argument has no ``=``, or a key is given twice.
    """
    from autotailor.config import split_overrides

    names = known_keys()
    config: dict[str, object] = {}
    overrides: list[str] = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ProjectError(
                f"argument {setting!r}: expected KEY=VALUE, such as model=mine or finetune.epochs=20; options of "
                "Snakemake stand behind --"
            )
        if key == "overrides":
            parts = split_overrides(value)
            overrides += parts if isinstance(parts, list) else []
        elif key in config:
            raise ProjectError(f"argument {setting!r}: {key} is given twice")
        elif key in names:
            config[key] = value
        else:
            overrides.append(setting)
    return {**config, **({"overrides": overrides} if overrides else {})}


def check_names(config: Mapping[str, object]) -> None:
    """Raises ConfigError where there is no such model, device, cluster or recipe, before Snakemake starts."""
    from autotailor.config import split_names
    from autotailor.config.names import check_option, conf_folder

    for group in ("model", "device", "cluster", "recipe"):
        names = split_names(config[group]) if group in config else []
        for name in names if isinstance(names, list) else [names]:
            check_option(conf_folder(), group, str(name))


def known_keys() -> list[str]:
    """The keys that ``--config`` takes."""
    from autotailor.config import CommandLine

    return [field.name for field in fields(CommandLine)]


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
    names = ", ".join(sorted(path.name for path in own.iterdir() if path.is_dir()))
    raise ProjectError(f"--profile {name}: no such profile; name a folder with profile.yaml, or one of {names}")


def _written(value: object) -> str:
    """A value as Snakemake reads it from its command line: lists as YAML, which JSON is, too."""
    return value if isinstance(value, str) else json.dumps(value)
