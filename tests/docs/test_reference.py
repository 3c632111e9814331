"""The generated pages of the reference; the schema that they are made of, against the packages that read the keys."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import generate
import pytest
import yaml
from jsonschema import Draft202012Validator

from autotailor import AutoTailorError

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/conf.schema.yaml").read_text(encoding="utf-8"))
DESCRIBED = {name: part["properties"] for name, part in SCHEMA["$defs"].items()}
TRAININGS = ("pretrain", "finetune", "polish")
PICTURES_OF = ("folder", "source", "huggingface", "webdataset", "torchvision")
INHERITED = dict.fromkeys(PICTURES_OF, "pictures") | dict.fromkeys(TRAININGS, "training")
MADE_ELSEWHERE = {
    "space": {},
    "sensitivity": {"calibration"},
    "polish": {"epochs", "resume_from"},
}  # fields that are no keys of the section
FOR_PEOPLE = {"search": {"name"}} | {name: {"kind"} for name in ("pictures", *PICTURES_OF)}
LEAST = {
    "cluster": {"name": "mine"},
    "training": {"epochs": 1},
    "pretrain": {"epochs": 1},
    "finetune": {"epochs": 1},
    "device": {"name": "host"},
    "counting": {"name": "macs", "cost": "macs"},
}
PICTURES = {"name": "mine", "resolution": 32}


def described(name: str) -> dict[str, Any]:
    shared = DESCRIBED.get(INHERITED.get(name, ""), {})
    return {key: shared[key] for key in shared if key not in generate.NOT_SHARED.get(name, ())} | DESCRIBED[name]


def reader(name: str) -> Any:
    """The dataclass that reads a section."""
    module, attribute = SCHEMA["$defs"][name]["$comment"].rsplit(".", 1)
    return getattr(importlib.import_module(module), attribute)


def read(name: str, section: Mapping[str, Any]) -> object:
    made, values = reader(name), {k: tuple(v) if isinstance(v, list) else v for k, v in section.items()}
    if name == "space":
        return made.from_config(section)
    return made.from_section(section) if hasattr(made, "from_section") else made(**values)


def least(name: str) -> dict[str, Any]:
    """The smallest section that is accepted."""
    return dict(PICTURES if "pictures" in (name, INHERITED.get(name)) else LEAST.get(name, {}))


def refused_values() -> Iterator[Any]:
    """For each bound and each choice of the schema a value that lies just outside."""
    for name in DESCRIBED:
        for key, part in described(name).items():
            outside = {
                "minimum": lambda bound: bound - 1,
                "maximum": lambda bound: bound + 1,
                "exclusiveMinimum": lambda bound: bound,
                "exclusiveMaximum": lambda bound: bound,
                "enum": lambda _: "unheard_of",
            }
            for word, value in outside.items():
                if word in part:
                    yield pytest.param(name, key, value(part[word]), id=f"{name}.{key}-{word}")


@pytest.mark.parametrize("name", ["configuration.md", "cli.md"])
def test_a_committed_page_is_what_the_schema_and_the_commands_say(name: str) -> None:
    committed = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert committed == generate.PAGES[name](), f"docs/reference/{name} is out of date: call `make docs`, and commit it"


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_keys_of_the_schema_are_those_that_the_package_reads(name: str) -> None:
    fields = {field.name for field in dataclasses.fields(reader(name))}
    assert set(described(name)) - FOR_PEOPLE.get(name, set()) == fields - set(MADE_ELSEWHERE.get(name, ()))


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_defaults_of_the_schema_are_those_of_the_package(name: str) -> None:
    for field in dataclasses.fields(reader(name)):
        part = described(name).get(field.name, {})
        if "default" in part and field.default is not dataclasses.MISSING:
            default = list(field.default) if isinstance(field.default, tuple) else field.default
            assert part["default"] == default, field.name


@pytest.mark.parametrize(("name", "key", "value"), refused_values())
def test_a_value_outside_the_range_of_the_schema_is_refused_by_the_package(name: str, key: str, value: Any) -> None:
    read(name, least(name))
    with pytest.raises(AutoTailorError):
        read(name, least(name) | {key: value})


def test_every_key_has_a_description() -> None:
    silent = [
        f"{section.title} {key}"
        for section in generate.sections()
        for key, part in section.keys.items()
        if not part.get("description")
    ]
    assert silent == []


def test_the_values_that_the_pages_show_have_the_types_of_the_schema() -> None:
    for section in generate.sections():
        values = yaml.safe_load((ROOT / section.source).read_text(encoding="utf-8"))
        for step in section.path:
            values = values[step]
        for key, value in values.items():
            if key in section.keys and not (isinstance(value, str) and value.startswith("${")):
                assert Draft202012Validator(section.keys[key]).is_valid(value), f"{section.source}: {key}"


def test_the_page_of_the_commands_is_written_for_readers_and_not_for_argparse() -> None:
    page = generate.command_page()
    assert "%%" not in page
    flags = [line for line in page.splitlines() if line.startswith(("| `--no-polish`", "| `--yaml`"))]
    assert len(flags) >= 2
    assert all(line.split("|")[2].strip() == "" for line in flags), "a flag has no default to show"
