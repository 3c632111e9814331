"""A digest of the user's own code that a configuration names as ``package.module:factory``."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from pathlib import Path

from autotailor.code.closure import Code
from autotailor.code.workflow import modules_digest


def factory_content(source: str, cache: Path) -> str | None:
    """Digest of the code that the module of ``package.module:factory`` can run, without libraries.

    Args:
        source: the name.
        cache: a file that keeps the results of parsing.

    Returns:
        Hexadecimal digest; None where the module cannot be found.
    """
    module = source.partition(":")[0]
    modules = Code(own_folders(module), cache).closure(module)
    return modules_digest(modules) if modules else None


def own_folders(module: str) -> list[Path]:
    """Folders of the user's own modules: Python's path without libraries, and the folder of ``module``."""
    libraries = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    folders = [Path(entry or ".").resolve() for entry in sys.path]
    found = importlib.util.find_spec(module.partition(".")[0])  # finding a top-level module does not import it
    if found and found.submodule_search_locations:
        folders += [Path(location).resolve().parent for location in found.submodule_search_locations]
    elif found and found.origin:
        folders.append(Path(found.origin).resolve().parent)
    return [f for f in dict.fromkeys(folders) if f.is_dir() and not _is_library(f, libraries)]


def _is_library(folder: Path, libraries: set[Path]) -> bool:
    return folder in libraries or folder.name in ("site-packages", "dist-packages", "lib-dynload", "bin")
