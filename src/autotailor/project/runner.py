"""Builds the runner, the C++ program that runs on devices, from the sources that belong to the package."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence

from autotailor.project import foreground, places
from autotailor.project.folder import ProjectError


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
