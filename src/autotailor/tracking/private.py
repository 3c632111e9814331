"""Removes private facts from tracking and reports: how to reach a device, and the name of the user.

Stores and reports are copied and shared. A device's address, its serial number and the path of its key identify a
person's machines and are of no use to a reader; a path in a home folder contains the user's name.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotailor.ir.errors import printable

PRIVATE = frozenset({"address", "serial", "key", "password", "token"})
"""Configuration keys that end in one of these names are left out."""

_HOMES = re.compile(r"(?<![\w.])(/home|/Users)/[^/\s'\"]+")


def public(section: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, nested or flattened, without private keys and with ``~`` in place of home folders.

    Args:
        section: plain values; it is not changed.
    """
    return {key: _shown(value) for key, value in section.items() if str(key).rpartition(".")[2] not in PRIVATE}


def _shown(value: Any) -> Any:
    """A value without private keys and home folders."""
    if isinstance(value, Mapping):
        return public(value)
    if isinstance(value, (list, tuple)):
        return [_shown(part) for part in value]
    return printable(_HOMES.sub("~", _without_own_home(value))) if isinstance(value, str) else value


def _without_own_home(text: str) -> str:
    """A text with ``~`` in place of this user's home folder; a home folder of / is not replaced."""
    home = str(Path.home()).rstrip("/")
    return re.sub(rf"(?<![\w.]){re.escape(home)}(?=/|$)", "~", text) if home else text
