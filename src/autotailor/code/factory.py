"""The code of the workflow's rules, and of the user's own ``package.module:factory``.

A rule runs its script, ``stage.py``, and everything that both import.
"""

import hashlib
import importlib.util
import json
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from autotailor.code.closure import Code
from autotailor.project import places

CACHE = Path(".snakemake") / "autotailor" / "code.json"
OBSERVERS = ("autotailor.code", "autotailor.logs", "autotailor.project", "autotailor.stages", "autotailor.tracking")
"""Modules that only record how artifacts are made, or where files lie, and do not influence the artifacts.

What a stage reads and depends on reruns it as inputs and parameters of its rule."""


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
    spec = importlib.util.find_spec(module.partition(".")[0])  # finding a top-level module does not import it
    if spec and spec.submodule_search_locations:
        folders += [Path(location).resolve().parent for location in spec.submodule_search_locations]
    elif spec and spec.origin:
        folders.append(Path(spec.origin).resolve().parent)
    return [f for f in dict.fromkeys(folders) if f.is_dir() and not _is_library(f, libraries)]


def _is_library(folder: Path, libraries: set[Path]) -> bool:
    return folder in libraries or folder.name in ("site-packages", "dist-packages", "lib-dynload", "bin")


def rule_code(root: Path) -> Code:
    """The code of the workflow, from which ``rule_modules`` takes the closure of a rule's script.

    Args:
        root: the folder with ``workflow``: a clone with the package in ``src``, or the folder ``share`` of an installed
            package. The package then lies among libraries, which do not count.
    """
    in_clone = root / "src" / "autotailor"
    package = in_clone if in_clone.is_dir() else places.PACKAGE
    return Code([root / "workflow" / "scripts"], CACHE, OBSERVERS, {"autotailor": package})


def rule_modules(code: Code, root: Path, rule: str) -> dict[str, str]:
    """Maps each module that a rule can run to the hash of its meaning."""
    return code.closure(root / "workflow" / "scripts" / f"{rule}.py")


def modules_digest(modules: Mapping[str, str]) -> str:
    """Twelve hexadecimal digits of the SHA-256 of a result of ``rule_modules``."""
    text = json.dumps(dict(modules), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
