"""Puts what a run needs beside the modules into the wheel: workflow, configuration, and the runner's sources.

In a clone they lie beside ``src``, once. A wheel has them in ``autotailor/share``, where ``autotailor.project.places``
finds them. An editable installation copies nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHARED = {"workflow": "workflow", "conf": "conf", "src/runner": "runner"}
"""Folders of the repository, each with its name in ``autotailor/share``."""

LEFT_OUT = ("__pycache__", "*.pyc", ".*")


class BuildWithShare(build_py):
    """Copies the modules, then the shared folders."""

    def run(self) -> None:
        """Copies everything anew, so that a file that is gone from the repository is gone from the wheel, too."""
        package = Path(self.build_lib) / "autotailor"
        if package.exists() and not self.editable_mode:
            shutil.rmtree(package)
        super().run()
        if self.editable_mode:
            return
        share = package / "share"
        for folder, name in SHARED.items():
            shutil.copytree(ROOT / folder, share / name, ignore=shutil.ignore_patterns(*LEFT_OUT))


setup(cmdclass={"build_py": BuildWithShare})
