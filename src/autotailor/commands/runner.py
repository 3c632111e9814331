"""``autotailor runner [host] [aarch64]``: builds the program that measures on devices."""

from __future__ import annotations

import argparse


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``runner`` to the commands."""
    parser = commands.add_parser(
        "runner",
        help="build the program that measures on devices",
        description="Compiles the program with which ncnn measures on phones and boards. It needs cmake, ninja and a "
        "C++ compiler, takes minutes, and is done once.",
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="host (this computer) or aarch64 (phones and boards); both if none"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Builds the runner; returns the exit code of the build.

    Raises:
        ProjectError: the build cannot begin.
    """
    from autotailor.project.runner import build

    return build(options.targets)
