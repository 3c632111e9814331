"""Checks values against a JSON schema; the message is one sentence."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

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
    error = best_match(_validator(schema_path.read_text(encoding="utf-8")).iter_errors(value))
    if error is not None:
        raise ConfigError(f"{where}: {_explain(error)}")


def _not_finite(value: object, place: str = "") -> Iterator[tuple[str, float]]:
    """The places and values of NaN, which breaks no bound of a schema, and of infinity, which most bounds let pass."""
    if isinstance(value, float) and not math.isfinite(value) and not (value == math.inf and place in LIMITS):
        yield place, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if (below := f"{place}.{key}" if place else str(key)) not in UNREAD:
            yield from _not_finite(each, below)


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    """What checks values against a schema, which is given as YAML."""
    return Draft202012Validator(yaml.load(schema, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "a mapping",
}
"""Types of JSON as a user calls them; a type that is missing here keeps its own name."""


def _explain(error: ValidationError) -> str:
    """One sentence about a mismatch."""
    place = ".".join(str(part) for part in error.absolute_path)
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    known = list(schema.get("properties", {}))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        strange = [str(key) for key in error.instance if key not in known]
        return unknown("key", ".".join(filter(None, [place, strange[0]])), strange[0], known)
    if error.validator == "required":
        return f"{place or 'the configuration'}: {error.message}"
    if error.validator == "anyOf":
        return f"{place} is {error.instance!r}, but {_alternatives(error)}"
    return f"{place} is {error.instance!r}, but {error.message.removeprefix(repr(error.instance) + ' ')}"


def _alternatives(error: ValidationError) -> str:
    """What a value may be that is none of several alternatives; a value that belongs into a list is shown in one."""
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    types = [str(each.get("type")) for each in schema.get("anyOf", [])]
    wanted = f"has to be {' or '.join(NAMES.get(each, each) for each in types)}"
    if "array" in types and Draft202012Validator(schema).is_valid([error.instance]):
        return f"{wanted}; a single value stands in a list as well: {json.dumps([error.instance])}"
    return wanted
