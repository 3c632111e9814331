from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from autotailor import config
from autotailor.config import ConfigError

ROOT = Path(__file__).parents[3]
CONF = ROOT / "conf"
SCHEMAS = ROOT / "workflow" / "schemas"
SCHEMA = yaml.safe_load((SCHEMAS / "conf.schema.yaml").read_text(encoding="utf-8"))
PLACES = {
    "training": ("model.pretrain", "finetune", "polish"),
    "pretrain": ("model.pretrain",),
    "space": ("model.space",),
    **dict.fromkeys(("pictures", "folder", "source", "huggingface", "webdataset", "torchvision", "digits"), ("data",)),
}
"""Where the sections of ``$defs`` stand in a configuration; the others have the names of their places."""
LIMITLESS = ("device.max_minutes", "device.drift", "profile.max_minutes")


def numeric(keys: Mapping[str, Any], place: str) -> Iterator[tuple[str, bool]]:
    """Dotted names of the keys that take a number, and whether the number stands in a list."""
    for key, part in keys.items():
        options = [part, *part.get("anyOf", ())]
        kinds = {kind for each in options for kind in ([each["type"]] if isinstance(each.get("type"), str) else [])}
        kinds |= {kind for each in options if isinstance(each.get("type"), list) for kind in each["type"]}
        items = str([each.get("items") for each in options])
        if kinds & {"integer", "number"}:
            yield f"{place}{key}", False
        if "number" in items or "integer" in items:
            yield f"{place}{key}", True
        yield from numeric(part.get("properties", {}), f"{place}{key}.")


def every_number() -> list[tuple[str, bool]]:
    """All numeric keys of the schema by their places in a configuration."""
    found = list(numeric(SCHEMA["properties"], ""))
    for name, part in SCHEMA["$defs"].items():
        for place in PLACES.get(name, (name,)):
            found += numeric(part["properties"], f"{place}.")
    return sorted(set(found))


def changed(composed: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    """The configuration with another value; sections that it lacks are made."""
    changed = copy.deepcopy(composed)
    inner, (*sections, last) = changed, key.split(".")
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    return changed


@pytest.mark.parametrize(("key", "in_list"), every_number())
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_by_the_name_of_their_key(
    composed: dict[str, Any], key: str, in_list: bool, number: float
) -> None:
    given = changed(composed, key, [number] if in_list else number)
    if key in LIMITLESS and number == math.inf:
        config.validate(given, SCHEMAS / "conf.schema.yaml", "conf")
        return
    with pytest.raises(ConfigError, match=rf"^conf: {key}{'.0' if in_list else ''} is {number}, but .* a .*number"):
        config.validate(given, SCHEMAS / "conf.schema.yaml", "conf")


@pytest.mark.parametrize("key", ["export.budgets", "polish.rounds"])
def test_nan_in_a_mapping_of_a_list_is_named(composed: dict[str, Any], key: str) -> None:
    given = changed(composed, key, [{"latency": 3}, {"latency": math.nan}])
    with pytest.raises(ConfigError, match=rf"{key}\.1\.latency is nan, but has to be a finite number$"):
        config.validate(given, SCHEMAS / "conf.schema.yaml", "conf")


@pytest.mark.parametrize("key", ["data.arguments.threshold", "device.options.threshold"])
def test_what_a_function_of_the_user_or_a_runtime_reads_may_be_infinite(composed: dict[str, Any], key: str) -> None:
    config.validate(changed(composed, key, math.inf), SCHEMAS / "conf.schema.yaml", "conf")


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    return config.compose(CONF, "resnet_digits", "host", [])


def test_a_value_of_the_wrong_type_is_named() -> None:
    composed = config.compose(CONF, "resnet_digits", "host", ["threads=many"])
    with pytest.raises(ConfigError, match=r"threads is 'many', but is not of type 'integer'"):
        config.validate(composed, SCHEMAS / "conf.schema.yaml", "conf")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("50%", r"budgets is '50%', but .* a whole number or a list; .* in a list as well: \[\"50%\"\]$"),
        (3.5, r"budgets is 3\.5, but has to be a whole number or a list; .*: \[3\.5\]$"),
        (True, r"budgets is True, but has to be a whole number or a list$"),
    ],
)
def test_a_value_that_is_none_of_several_types_is_told_them(value: object, told: str) -> None:
    composed = config.compose(CONF, "resnet_digits", "host", [])
    composed["export"]["budgets"] = value
    with pytest.raises(ConfigError, match=told):
        config.validate(composed, SCHEMAS / "conf.schema.yaml", "conf")


@pytest.mark.parametrize("value", ["search", "finetune,profile", True])
def test_a_rule_that_cannot_be_kept_is_told_those_that_can(value: object) -> None:
    told = r"has to be one of pretrain, finetune, sensitivity, profile, polish, train_pool, compare or a list$"
    with pytest.raises(ConfigError, match=rf"^--config: keep is {value!r}, but {told}"):
        config.validate({"keep": value}, SCHEMAS / "config.schema.yaml", "--config")


def test_unknown_config_keys_list_the_known_ones() -> None:
    known = "cluster, device, keep, lut, model, overrides"
    with pytest.raises(ConfigError, match=rf"unknown key 'devise'. Did you mean 'device'\? Known: {known}"):
        config.validate({"devise": "host"}, SCHEMAS / "config.schema.yaml", "--config")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("validate.attempts", 2.0, "validate.attempts is 2.0, but is not of type 'integer'"),
        ("compare.seeds", [1.0], "compare.seeds.0 is 1.0"),
        ("export.budgets", 3.0, "export.budgets is 3.0, but has to be a whole number or a list"),
    ],
)
def test_what_is_counted_is_no_float(key: str, value: object, says: str) -> None:
    """``1e3`` of the command line is one, and the rules would count with it after hours of work."""
    composed = config.compose(CONF, "resnet_digits", "host")
    with pytest.raises(ConfigError, match=says):
        config.validate(changed(composed, key, value), SCHEMAS / "conf.schema.yaml", "conf")
