"""``autotailor runner [host] [aarch64] [--serve]``: builds the programs that run on devices."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from collections.abc import Sequence

from autotailor.project import foreground, places
from autotailor.project.folder import ProjectError


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
    return build(options.targets, options.serve)


def build(targets: Sequence[str], is_server: bool = False) -> int:
    """Builds the runner for some targets, and says where it is; returns the exit code of the build.

    Args:
        targets: ``host`` and ``aarch64``; none builds both.
        is_server: builds what serves pools instead: ``autotailor-serve`` and ``libautotailor.so``.

    Raises:
        ProjectError: pip is missing, which fetches the source of ncnn.
    """
    if importlib.util.find_spec("pip") is None:
        raise ProjectError(f"the runner needs pip, which fetches ncnn: {sys.executable} -m ensurepip")
    folder = places.runner_folder() / "src" / "runner"
    if places.IS_INSTALLED:
        shutil.copytree(places.RUNNER_SOURCES, folder, dirs_exist_ok=True)
    script = folder / "serve" / "make.py" if is_server else folder / "build.py"
    return foreground.run([sys.executable, str(script), *targets])
