"""Overrides ``key=value``: read from the command line, parsed, and refused where they change nothing that exists."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from autotailor.config.names import ConfigError, check_option, find_file, groups, unknown
from autotailor.ir.errors import first_line


def split_overrides(value: object) -> object:
    """Splits a text such as ``[seed=1,data.mean=[0.4,0.5,0.5]]`` into a list of overrides; returns others unchanged.

    Snakemake reads its command line as YAML, and YAML reads a list with unquoted brackets inside as one text. The text
    is split at the commas outside of inner brackets. The outer brackets may be missing.
    """
    if not isinstance(value, str):
        return value
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    parts, depth = [""], 0
    for letter in inner:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def parse(overrides: Sequence[str]) -> list[Override]:
    """Parses overrides with Hydra."""
    try:
        return list(OverridesParser.create().parse_overrides(overrides=list(overrides)))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"overrides {list(overrides)}: expected key=value; {first_line(error)}") from error


def check_override(override: Override, conf_dir: Path, base: Mapping[str, Any]) -> None:
    """Refuses an override unless it changes an existing key or chooses an existing file."""
    text, key = override.input_line, override.key_or_group
    if override.type is None or override.type.name != "CHANGE":
        raise ConfigError(f"override {text!r}: keys can be changed, not added or removed; write key=value")
    if key in ("model", "device", "cluster"):
        raise ConfigError(f"override {text!r}: choose it with --config {key}=...")
    if key in groups(conf_dir):
        check_option(conf_dir, key, str(override.value()))
        return
    value: Any = base
    walked: list[str] = []
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = [".".join([*walked, name]) for name in value] if isinstance(value, Mapping) else []
            raise ConfigError(f"override {text!r}: {unknown('key', key, '.'.join([*walked, part]), known)}")
        value = value[part]
        walked.append(part)


def check_own_section(override: Override, conf_dir: Path, model: str | None) -> None:
    """Refuses another file of a group where the model's file has its own section, because both would be mixed."""
    path, group = find_file(conf_dir, f"model/{model}.yaml"), override.key_or_group
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) if path else None
    except (UnicodeDecodeError, yaml.YAMLError):  # Hydra raises the error later, with a message
        return
    if isinstance(document, Mapping) and isinstance(document.get("model"), Mapping) and group in document:
        raise ConfigError(
            f"override {override.input_line!r}: {path} has its own section {group}; change the section's values "
            f"({group}.KEY=VALUE), or remove the section from the file"
        )
