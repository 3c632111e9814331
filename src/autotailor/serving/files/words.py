"""The words of a line of ``pool.txt``; each raises ValueError where a word is none of its kind."""

import math
import re

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HASH = re.compile(r"[0-9a-f]{64}")


def name(word: str) -> str:
    """A name, which may become a part of a path."""
    if not _NAME.fullmatch(word):
        raise ValueError(f"{word!r} is no name")
    return word


def digest(word: str) -> str:
    """A SHA-256."""
    if not _HASH.fullmatch(word):
        raise ValueError(f"{word!r} is no SHA-256")
    return word


def count(word: str, least: int = 1) -> int:
    """A whole number from ``least``."""
    if not (word.isascii() and word.isdigit()) or int(word) < least:
        raise ValueError(f"{word!r} is no whole number from {least}")
    return int(word)


def number(word: str) -> float:
    """A finite number."""
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word!r} is no finite number")
    return value
