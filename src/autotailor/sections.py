"""Sections of the configuration: frozen dataclasses that pydantic checks, whose errors are the house's sentences."""

import dataclasses
import difflib
import functools
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, dataclass_transform, get_args

import yaml  # type: ignore[import-untyped]
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from autotailor.ir.errors import AutoTailorError
from autotailor.values import UNFIT, UNKNOWN, UnfitError

EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "an integer",
    "tuple_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping of parameters",
}
"""Types of pydantic's errors, and what was expected."""
STRANGE, MISSING = "unexpected_keyword_argument", "missing"
_TOLD = re.compile(r"^(\w+(?:, \w+)*): (.+?)(?=^\w+(?:, \w+)*: |\Z)", re.MULTILINE | re.DOTALL)


class _Telling(type):
    """Says what is wrong with a section that a program makes, by the name of its class."""

    def __call__(cls, *values: Any, **named: Any) -> Any:
        try:
            return super().__call__(*values, **named)
        except ValidationError as error:
            raise cls.ERROR(_sentence(error, cls, cls.__name__)) from error  # type: ignore[attr-defined]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Section(metaclass=_Telling):
    """A section of the configuration: a subclass is a frozen dataclass whose fields are checked by their annotations.

    ``class SearchConfig(Section, of="search", error=SearchError)`` reads the section ``search``. What several values
    must be together is checked in ``__post_init__``, which raises ``UnfitError``. The ``Attributes`` of the docstring
    describe the keys, also in the reference and in the schema for editors.
    """

    SECTION: ClassVar[str] = ""
    """Where the section stands in the configuration."""
    ERROR: ClassVar[type[AutoTailorError]] = AutoTailorError
    """The type of its errors."""

    def __init_subclass__(
        cls, *, of: str | None = None, error: type[AutoTailorError] | None = None, kw_only: bool = False
    ) -> None:
        """Makes the subclass a dataclass; what is left out is inherited."""
        cls.SECTION, cls.ERROR = cls.SECTION if of is None else of, error or cls.ERROR
        dataclass(cls, frozen=True, kw_only=kw_only, config=ConfigDict(extra="forbid", defer_build=True))

    @classmethod
    def from_section(cls, section: Mapping[str, Any], *, where: str | None = None) -> Self:
        """Reads a section of plain values, in which lists stand for tuples, and mappings for nested sections.

        Args:
            section: values by key.
            where: how messages call the section, by default ``SECTION``.

        Raises:
            AutoTailorError: a key is unknown or missing, or a value cannot be used; the error has the type ``ERROR``.
        """
        place = cls.SECTION if where is None else where
        if not isinstance(section, Mapping):
            raise cls.ERROR(f"{place}: expected a mapping of parameters, not {section!r}")
        try:
            read: Self = _adapter(cls).validate_python({str(key): value for key, value in section.items()})
            return read
        except ValidationError as error:
            raise cls.ERROR(_sentence(error, cls, place)) from error

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON schema of the section, for editors and for the reference."""
        return _adapter(cls).json_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler.resolve_ref_schema(handler(core))
        schema["description"] = inspect.getdoc(cls).partition("\n\n")[0]  # type: ignore[union-attr]
        told = descriptions(cls)
        for key, part in schema.get("properties", {}).items():
            part.pop("title", None)
            part["description"] = told.get(key, "")
        return schema


@functools.cache
def _adapter(section: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(section)


def descriptions(section: type[Any]) -> dict[str, str]:
    """What the docstrings of a section and of those that it builds on say of its keys, as Markdown."""
    sentences: dict[str, str] = {}
    for owner in reversed(section.__mro__):
        text = inspect.cleandoc(owner.__dict__.get("__doc__") or "").partition("Attributes:\n")[2]
        for names, sentence in _TOLD.findall(textwrap.dedent(text)):
            sentences |= dict.fromkeys(names.split(", "), " ".join(sentence.split()).replace("``", "`"))
    return sentences


def _sentence(error: ValidationError, section: type[Any], where: str) -> str:
    """What is wrong first: keys that are unknown, or missing, before values."""
    errors = error.errors(include_url=False)
    for kind in (STRANGE, MISSING):
        if wrong := [each for each in errors if each["type"] == kind]:
            *inner, _ = wrong[0]["loc"]
            keys = sorted(str(each["loc"][-1]) for each in wrong if [*each["loc"][:-1]] == inner)
            names = [field.name for field in dataclasses.fields(_owner(section, inner))]
            return f"{_place(where, inner)}: {_keys(kind, keys, names)}"
    first = errors[0]
    loc, value, message = list(first["loc"]), first["input"], first["msg"]
    if isinstance(unfit := first.get("ctx", {}).get("error"), UnfitError):
        return f"{_place(where, [*loc, *filter(None, [unfit.key])])}: {unfit}"
    is_key = loc[-1:] == ["[key]"]
    place = _place(where, loc[:-2] if is_key else loc)
    if first["type"] == UNKNOWN:
        kind = "key" if is_key else next(part for part in reversed(loc) if isinstance(part, str))
        return f"{place}: unknown {kind} {value!r}; known are {message}{meant(value, message.split(', '))}"
    expected = EXPECTED.get(first["type"], message)
    return f"{place}: expected {message if first['type'] == UNFIT else expected}, not {value!r}"


def _keys(kind: str, keys: Sequence[str], names: Sequence[str]) -> str:
    if kind == MISSING:
        return f"missing keys {keys}"
    return f"unknown keys {keys}; known are {sorted(names)}{meant(keys[0], names)}"


def meant(value: object, names: Iterable[str]) -> str:
    """The question whether somebody meant one of the known names; empty where none resembles a value."""
    close = difflib.get_close_matches(str(value), list(names), n=1)
    return f". Did you mean {close[0]!r}?" if close else ""


def _place(where: str, loc: Iterable[int | str]) -> str:
    """A place in a section; a name with a colon is a prefix, as in ``--config: keep``."""
    inner = ".".join(map(str, loc))
    if where.endswith(":"):
        return f"{where} {inner}" if inner else where[:-1]
    return ".".join(filter(None, [where, inner])) or "the configuration"


def _owner(section: type[Any], loc: Iterable[int | str]) -> type[Any]:
    """The nested section at a place in a section."""
    for key in loc:
        if isinstance(key, str) and (field := section.__pydantic_fields__.get(key)):
            section = next(part for part in _parts(field.annotation) if isinstance(part, _Telling))
    return section


def _parts(annotation: Any) -> Iterable[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


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
