"""Paths of what belongs to autotailor and is no module: the workflow, its configuration, the runner's sources."""

import hashlib
import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package ``autotailor``."""

SHARE = PACKAGE / "share"
"""Where a wheel has what a clone has beside ``src``; a clone has no such folder."""

IS_INSTALLED = SHARE.is_dir()
"""Whether the package comes from a wheel; it does not in a clone, nor where a clone is installed with ``pip -e``."""

ROOT = SHARE if IS_INSTALLED else PACKAGE.parents[1]
WORKFLOW = ROOT / "workflow"
CONF = ROOT / "conf"
RUNNER_SOURCES = ROOT / "runner" if IS_INSTALLED else ROOT / "src" / "runner"


RUNNER_COMMAND = "autotailor runner" if IS_INSTALLED else "make runner"
"""The command that builds the runner, for messages."""


def serve_command(target: str) -> str:
    """The command that builds what serves pools on a target, for messages."""
    return f"autotailor runner --serve {target}" if IS_INSTALLED else f"make serve TARGETS={target}"


def runner_folder() -> Path:
    """The folder in which the runner is built: ``src/runner`` below it is read, and ``build/runner`` is written.

    This is the clone. A wheel's sources may lie where nobody may write, so that they are built in the user's cache
    folder, under the hash of the sources, those of the server of pools included: another version has another folder.
    """
    if not IS_INSTALLED:
        return ROOT
    summed = hashlib.sha256()
    for path in sorted(RUNNER_SOURCES.rglob("*")):
        if path.is_file() and path.parent.name != "__pycache__":
            summed.update(str(path.relative_to(RUNNER_SOURCES)).encode() + b"\0" + path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "autotailor" / "runner" / f"sources-{summed.hexdigest()[:12]}"


def runner_builds() -> Path:
    """The folder of the built runners, with one folder for each target."""
    return runner_folder() / "build" / "runner"
