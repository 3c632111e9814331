"""The code of the workflow's rules: each rule runs its script, what ``stage.py`` does around it, and their imports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from autotailor.code.closure import Code

CACHE = Path(".snakemake") / "autotailor" / "code.json"
OBSERVERS = ("autotailor.code", "autotailor.logs", "autotailor.tracking")
"""What only records how artifacts came about, and has no influence on them."""


def rule_code(root: Path) -> Code:
    """The code of a checkout, to ask for the closure of a rule's script.

    Args:
        root: folder of the checkout.
    """
    return Code([root / "src", root / "workflow" / "scripts"], CACHE, OBSERVERS)


def rule_modules(code: Code, root: Path, rule: str) -> dict[str, str]:
    """What a rule can run: module to the hash of what it says."""
    return code.closure(root / "workflow" / "scripts" / f"{rule}.py")


def modules_digest(modules: Mapping[str, str]) -> str:
    """Twelve hexadecimal digits of the SHA-256 of what ``rule_modules`` returned."""
    text = json.dumps(dict(modules), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
