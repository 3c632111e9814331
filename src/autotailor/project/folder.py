"""Writes the folder of a new project: configuration to fill in, places for networks and pictures, and a README."""

import shutil
from pathlib import Path

from autotailor.ir.errors import AutoTailorError

TEMPLATE = Path(__file__).resolve().parent / "template"
HIDDEN = ("gitignore", "dvcignore")
"""Files of the template that get a dot before their names; with a dot, they would hold for the template itself."""


class ProjectError(AutoTailorError):
    """A project cannot be made in a folder, or no run can be started in it."""


def create(directory: Path) -> list[Path]:
    """Writes a new project.

    Args:
        directory: a new folder, or one that is empty.

    Returns:
        The files, sorted.

    Raises:
        ProjectError: the directory is a file, has something in it, or cannot be written.
    """
    try:
        if directory.exists() and not directory.is_dir():
            raise ProjectError(f"{directory}: this is a file; name a new folder")
        if directory.is_dir() and (inside := sorted(path.name for path in directory.iterdir())):
            shown = ", ".join(inside[:3]) + (" ..." if len(inside) > 3 else "")
            raise ProjectError(f"{directory}: the folder is not empty ({shown}); name a new folder, or an empty one")
        return [_copy(path, directory) for path in sorted(TEMPLATE.rglob("*")) if _belongs(path)]
    except OSError as error:
        raise ProjectError(f"{directory}: a project cannot be written there ({error.strerror})") from error


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _copy(path: Path, directory: Path) -> Path:
    target = directory / path.relative_to(TEMPLATE)
    if target.name in HIDDEN:
        target = target.with_name(f".{target.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)  # without the permissions of the installed file, which may be for reading alone
    return target
