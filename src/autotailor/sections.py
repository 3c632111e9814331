"""Sections of the configuration: read into frozen dataclasses, which refuse unknown and missing keys; and as files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]

from autotailor.ir.errors import AutoTailorError

Config = TypeVar("Config")
_BEING_READ: ContextVar[tuple[type[Any], str] | None] = ContextVar("being_read", default=None)
"""The dataclass that ``read_section`` makes at the moment, and the name of its section."""


def read_section(config: type[Config], section: Mapping[str, Any], where: str, error: type[AutoTailorError]) -> Config:
    """A dataclass from its section of the configuration.

    Args:
        config: a dataclass that checks its own values.
        section: plain values by field name; lists become tuples.
        where: name of the section, for messages.
        error: type of the error to raise.

    Raises:
        AutoTailorError: the section is not a mapping, or a key is unknown or missing; the error has the type ``error``.
    """
    if not isinstance(section, Mapping):
        raise error(f"{where}: expected a mapping of parameters, not {section!r}")
    fields = {f.name: f for f in dataclasses.fields(config)}  # type: ignore[arg-type]
    if unknown := sorted(set(map(str, section)) - set(fields)):
        raise error(f"{where}: unknown keys {unknown}; known are {sorted(fields)}")
    absent = dataclasses.MISSING
    required = {f.name for f in fields.values() if f.default is absent and f.default_factory is absent}
    if missing := sorted(required - set(section)):
        raise error(f"{where}: missing keys {missing}")
    reading = _BEING_READ.set((config, where))
    try:
        return config(**{key: tuple(value) if isinstance(value, list) else value for key, value in section.items()})
    finally:
        _BEING_READ.reset(reading)


def place(owner: object) -> str:
    """How messages call an object with parameters while the object checks them.

    Returns:
        The section of the configuration that ``read_section`` reads the object from, which is what a user of the
        workflow has written; the name of the class where a program makes the object.
    """
    reading = _BEING_READ.get()
    return reading[1] if reading is not None and reading[0] is type(owner) else type(owner).__name__


def check_integers(owner: object, least: Mapping[str, int], where: str, error: type[AutoTailorError]) -> None:
    """Raises an error of the type ``error`` unless each field is an integer of at least its value in ``least``."""
    for name, bound in least.items():
        value = getattr(owner, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < bound:
            raise error(f"{where}.{name}: expected an integer >= {bound}, not {value!r}")


def check_numbers(owner: object, least: Mapping[str, float], where: str, error: type[AutoTailorError]) -> None:
    """Raises an error of the type ``error`` unless each field is a finite number of at least its value in ``least``."""
    for name, bound in least.items():
        value = getattr(owner, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < bound:
            raise error(f"{where}.{name}: expected a number >= {bound:g}, not {value!r}")


def check_texts(owner: object, names: Sequence[str], where: str, error: type[AutoTailorError]) -> None:
    """Raises an error of the type ``error`` unless each named field is a text."""
    for name in names:
        if not isinstance(value := getattr(owner, name), str):
            raise error(f"{where}.{name}: expected a text, not {value!r}")


def flatten(section: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested dictionaries into one with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in section.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def read_sections(path: Path) -> dict[str, Any]:
    """Reads what ``write_sections`` has written."""
    return dict(yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def write_sections(path: Path, sections: Mapping[str, Any]) -> None:
    """Writes plain values as YAML, which keeps numbers that are keys, unlike JSON."""
    path.write_text(yaml.safe_dump(dict(sections), sort_keys=False), encoding="utf-8")
