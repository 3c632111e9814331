"""Checks values against a JSON schema; the message is one sentence."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from autotailor.config.errors import ConfigError
from autotailor.config.names import unknown

LIMITS = frozenset({"device.drift", "device.max_minutes", "profile.max_minutes"})
"""Keys in which infinity means that there is no limit."""
UNREAD = frozenset({"data.arguments", "device.options"})
"""Keys whose values go to a function of the user or to a runtime as they are."""


def validate(value: object, schema_path: Path, where: str) -> None:
    """Checks a value against a JSON schema.

    Args:
        value: plain value.
        schema_path: the schema, as YAML.
        where: name of the checked value, for the message.

    Raises:
        ConfigError: a number is NaN or infinite where a schema's bounds cannot tell, or the value does not match the
            schema. The message names the first mismatch and, for an unknown key, the known keys.
    """
    for place, number in _not_finite(value):
        if place in LIMITS:
            raise ConfigError(f"{where}: {place} is {number}, but has to be a number (infinity sets no limit)")
        raise ConfigError(f"{where}: {place} is {number}, but has to be a finite number")
    validator = _validator(schema_path.read_text(encoding="utf-8"))
    error = best_match(validator.iter_errors(value))
    if error is not None:
        raise ConfigError(f"{where}: {_explain(error, validator)}")


def _not_finite(value: object, place: str = "") -> Iterator[tuple[str, float]]:
    """The places and values of NaN, which breaks no bound of a schema, and of infinity, which most bounds let pass."""
    if isinstance(value, float) and not math.isfinite(value) and not (value == math.inf and place in LIMITS):
        yield place, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if (below := f"{place}.{key}" if place else str(key)) not in UNREAD:
            yield from _not_finite(each, below)


def _is_integer(_: object, value: object) -> bool:
    """Whether a value can count something: JSON takes 3.0 for an integer, Python's ``range`` does not."""
    return isinstance(value, int) and not isinstance(value, bool)


_CHECKER = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
_Validator = extend(Draft202012Validator, type_checker=_CHECKER)  # type: ignore[no-untyped-call]


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    """What checks values against a schema, which is given as YAML."""
    found: Draft202012Validator = _Validator(yaml.load(schema, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    return found


NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
}
"""Types of JSON as a user calls them; a type that is missing here keeps its own name."""


def _explain(error: ValidationError, validator: Draft202012Validator) -> str:
    """One sentence about a mismatch with a validator's schema."""
    place = ".".join(str(part) for part in error.absolute_path)
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    known = list(schema.get("properties", {}))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        strange = [str(key) for key in error.instance if key not in known]
        return unknown("key", ".".join(filter(None, [place, strange[0]])), strange[0], known)
    if error.validator == "required":
        return f"{place or 'the configuration'}: {error.message}"
    if error.validator == "anyOf":
        return f"{place} is {error.instance!r}, but {_alternatives(error, validator)}"
    return f"{place} is {error.instance!r}, but {error.message.removeprefix(repr(error.instance) + ' ')}"


def _alternatives(error: ValidationError, validator: Draft202012Validator) -> str:
    """What a value may be that is none of several alternatives; a value that belongs into a list is shown in one."""
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    parts = [_resolved(part, validator) for part in schema.get("anyOf", [])]
    wanted = f"has to be {' or '.join(map(_named, parts))}"
    is_listed = any(part.get("type") == "array" for part in parts)
    if is_listed and validator.evolve(schema=schema).is_valid([error.instance]):
        return f"{wanted}; a single value stands in a list as well: {json.dumps([error.instance])}"
    return wanted


def _resolved(part: Mapping[str, Any], validator: Draft202012Validator) -> Mapping[str, Any]:
    """A part of a schema, or what it refers to in ``$defs``."""
    whole: Any = validator.schema
    reference = str(part.get("$ref", ""))
    return dict(whole["$defs"][reference.removeprefix("#/$defs/")]) if reference else part


def _named(part: Mapping[str, Any]) -> str:
    """An alternative as a user calls it: its values where they are few, else its type."""
    if "enum" in part:
        return f"one of {', '.join(map(str, part['enum']))}"
    return NAMES.get(str(part.get("type")), str(part.get("type")))
