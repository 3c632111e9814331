"""Sections of the configuration: read into frozen dataclasses, which refuse unknown and missing keys; and as files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]

from autotailor.ir.errors import AutoTailorError

Config = TypeVar("Config")


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
    return config(**{key: tuple(value) if isinstance(value, list) else value for key, value in section.items()})


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
            raise error(f"{where}.{name}: expected a number >= {bound}, not {value!r}")


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
