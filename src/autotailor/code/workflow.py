"""The code of the workflow's rules: a rule runs its script, ``stage.py``, and everything that both import."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from autotailor.code.closure import Code
from autotailor.project import places

CACHE = Path(".snakemake") / "autotailor" / "code.json"
OBSERVERS = ("autotailor.code", "autotailor.logs", "autotailor.project", "autotailor.stages", "autotailor.tracking")
"""Modules that only record how artifacts are made, or where files lie, and do not influence the artifacts.

What a stage reads and depends on reruns it as inputs and parameters of its rule."""


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
