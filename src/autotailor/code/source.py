"""Meaning and references of source files; a cache keeps the results, because parsing all files takes a second."""

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from autotailor.artifacts import write_text
from autotailor.code.meaning import meaning, tree_meaning
from autotailor.code.references import References, references

MOST = 2000
"""Files that a cache keeps; a larger cache drops the files that the current process did not use."""


@dataclass(frozen=True)
class Source:
    """Meaning and references of a file; ``references.References`` describes the other attributes.

    Attributes:
        meaning: SHA-256 (hexadecimal) of its statements.
    """

    meaning: str
    names: tuple[str, ...]
    bindings: Mapping[str, str]
    lazy: Mapping[str, str]
    is_lazy: bool
    reads_data: bool


class Sources:
    """Sources by path; each file is read only once.

    Args:
        cache: file that keeps results for later processes; None keeps nothing.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache
        self._read: dict[Path, Source] = {}
        self._used: dict[str, Source] = {}
        self._is_new = False

    def read(self, path: Path) -> Source:
        """Meaning and references of a file; a file that is not Python has no references."""
        if path not in self._read:
            content = path.read_bytes()
            key = hashlib.sha256(content).hexdigest()
            if (source := self._cached.get(key)) is None:
                source = parse(content.decode("utf-8", "replace"))
                self._is_new = True
            self._read[path] = self._used[key] = source
        return self._read[path]

    def save(self) -> None:
        """Updates the cache; an error while writing is ignored, because the cache only saves time."""
        if self._cache is None or not self._is_new:
            return
        sources = self._cached | self._used
        kept = sources if len(sources) <= MOST else self._used
        text = json.dumps({"version": _version(), "files": {key: asdict(source) for key, source in kept.items()}})
        try:
            write_text(self._cache, text)
            self._is_new = False
        except OSError:
            return

    @cached_property
    def _cached(self) -> dict[str, Source]:
        """Content of the cache; empty where it cannot be read or another version of this package wrote it."""
        if self._cache is None:
            return {}
        try:
            said = json.loads(self._cache.read_text(encoding="utf-8"))
            if said["version"] != _version():
                return {}
            return {key: Source(**{**fields, "names": tuple(fields["names"])}) for key, fields in said["files"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def parse(text: str) -> Source:
    """Meaning and references of a text; a text that is not Python has no references."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return _source(meaning(text), References())
    return _source(tree_meaning(tree), references(tree))


def _source(said: str, refs: References) -> Source:
    return Source(said, tuple(sorted(refs.names)), refs.bindings, refs.lazy, refs.is_lazy, refs.reads_data)


def _version() -> str:
    """Hash of this package's own code, which determines the content of the cache."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256(b"".join(texts)).hexdigest()
