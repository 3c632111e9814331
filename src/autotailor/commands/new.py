"""``autotailor new DIRECTORY``: writes the folder of a new project, and says what to do in it."""

from __future__ import annotations

import argparse
import shlex

from autotailor.commands.terminal import given_path, say


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``new`` to the commands."""
    parser = commands.add_parser(
        "new",
        help="make the folder of a new project",
        description="Writes a folder with a configuration to fill in and places for networks and pictures. A run in it "
        "needs no clone of the repository.",
    )
    parser.add_argument("directory", type=given_path, metavar="DIRECTORY", help="a new folder, or an empty one")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Writes the project.

    Raises:
        ProjectError: the directory is not empty, or cannot be written.
    """
    from autotailor.project.folder import create

    create(options.directory)
    say(f"{options.directory} is a project now; README.md in it says what is where. To begin:")
    say(f"  cd {shlex.quote(str(options.directory))}")
    say("  autotailor run")
