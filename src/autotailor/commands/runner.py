"""``autotailor runner [host] [aarch64] [--serve]``: builds the programs that run on devices."""

from __future__ import annotations

import argparse


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``runner`` to the commands."""
    parser = commands.add_parser(
        "runner",
        help="build the program that measures on devices",
        description="Compiles the program with which ncnn measures on phones and boards. It needs cmake, ninja and a "
        "C++ compiler, takes minutes, and is done once. With --serve it compiles what serves pools instead: "
        "autotailor-serve, libautotailor.so and autotailor.h, with the ncnn of the first program.",
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="host (this computer) or aarch64 (phones and boards); both if none"
    )
    parser.add_argument("--serve", action="store_true", help="build the server of pools and its library instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Builds the runner; returns the exit code of the build.

    Raises:
        ProjectError: the build cannot begin.
    """
    from autotailor.project.runner import build

    return build(options.targets, options.serve)
