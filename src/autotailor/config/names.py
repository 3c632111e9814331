"""Names of the groups and files of ``conf``, and messages for names that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from autotailor.config.errors import ConfigError


def options(conf_dir: Path, group: str) -> list[str]:
    """Names of the files of one configuration group, for instance the known models."""
    return sorted(path.stem for path in (conf_dir / group).glob("*.yaml"))


def groups(conf_dir: Path) -> list[str]:
    """Names of the configuration groups."""
    return sorted(path.name for path in conf_dir.iterdir() if path.is_dir() and options(conf_dir, path.name))


def check_option(conf_dir: Path, group: str, name: str) -> None:
    """Raises ConfigError unless the group has a file of this name."""
    known = options(conf_dir, group)
    if name not in known:
        raise ConfigError(f"{unknown(group, name, name, known)} (the files of {conf_dir / group})")


def unknown(kind: str, shown: str, name: str, known: Iterable[str]) -> str:
    """Message for an unknown name, with a list of the known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {kind} {shown!r}.{hint} Known: {', '.join(names) or 'none'}"
