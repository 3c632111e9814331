"""The code of the workflow's rules: a rule runs its script, ``stage.py``, and everything that both import."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from autotailor.code.closure import Code

CACHE = Path(".snakemake") / "autotailor" / "code.json"
OBSERVERS = ("autotailor.code", "autotailor.logs", "autotailor.tracking")
"""Modules that only record how artifacts are made and do not influence the artifacts."""


def rule_code(root: Path) -> Code:
    """The code of a checkout, from which ``rule_modules`` takes the closure of a rule's script.

    Args:
        root: folder of the checkout.
    """
    return Code([root / "src", root / "workflow" / "scripts"], CACHE, OBSERVERS)


def rule_modules(code: Code, root: Path, rule: str) -> dict[str, str]:
    """Maps each module that a rule can run to the hash of its meaning."""
    return code.closure(root / "workflow" / "scripts" / f"{rule}.py")


def modules_digest(modules: Mapping[str, str]) -> str:
    """Twelve hexadecimal digits of the SHA-256 of a result of ``rule_modules``."""
    text = json.dumps(dict(modules), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
