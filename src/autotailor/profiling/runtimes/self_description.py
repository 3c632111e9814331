"""What a program on a device says about itself: a line of JSON that is an object with a version in it."""

import json
from collections.abc import Sequence
from typing import Any


def self_description(lines: Sequence[str], version: str) -> dict[str, Any] | None:
    """The object that the first of the lines holds; None where the answer makes no sense.

    Args:
        lines: the program's answer, or a part of it; a device may print anything.
        version: key of the version, which is a text.
    """
    try:
        about = json.loads(lines[0])
    except (ValueError, IndexError, RecursionError):
        return None
    return about if isinstance(about, dict) and isinstance(about.get(version), str) else None
