"""Small files by which one process tells others how far it is."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def write_note(path: Path, note: DataclassInstance) -> None:
    """Writes a dataclass as JSON; a reader sees the old note or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(asdict(note)) + "\n", encoding="utf-8")
    temporary.replace(path)
