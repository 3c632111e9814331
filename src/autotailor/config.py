"""Composes the configuration in ``conf/`` with Hydra, and checks it before any work.

``compose`` returns plain dictionaries instead of OmegaConf objects. Each rule gets only the sections that it depends
on.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from autotailor.agreement import check_classes, settle_resolution
from autotailor.factory import search_current_folder
from autotailor.ir.errors import AutoTailorError

Section = dict[str, Any]


class ConfigError(AutoTailorError):
    """The configuration names something that does not exist, or has an invalid value."""


def options(conf_dir: Path, group: str) -> list[str]:
    """Names of the files of one configuration group, for instance the known models."""
    return sorted(path.stem for path in (conf_dir / group).glob("*.yaml"))


def groups(conf_dir: Path) -> list[str]:
    """Names of the configuration groups."""
    return sorted(path.name for path in conf_dir.iterdir() if path.is_dir() and options(conf_dir, path.name))


def validate(value: object, schema_path: Path, where: str) -> None:
    """Checks a value against a JSON schema.

    Args:
        value: plain value.
        schema_path: the schema, as YAML.
        where: name of the checked value, for the message.

    Raises:
        ConfigError: the value does not match the schema. The message names the first mismatch and, for an unknown key,
            the known keys.
    """
    schema = yaml.safe_load(schema_path.read_text(encoding="utf-8"))
    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is not None:
        raise ConfigError(f"{where}: {_explain(error)}")


def _explain(error: ValidationError) -> str:
    """One sentence about a mismatch."""
    place = ".".join(str(part) for part in error.absolute_path)
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    known = list(schema.get("properties", {}))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        unknown = [str(key) for key in error.instance if key not in known]
        return _unknown("key", ".".join(filter(None, [place, unknown[0]])), unknown[0], known)
    if error.validator == "required":
        return f"{place or 'the configuration'}: {error.message}"
    return f"{place} is {error.instance!r}, but {error.message.removeprefix(repr(error.instance) + ' ')}"


def _unknown(kind: str, shown: str, name: str, known: Iterable[str]) -> str:
    """Message for an unknown name, with a list of the known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {kind} {shown!r}.{hint} Known: {', '.join(names) or 'none'}"


def split_overrides(value: object) -> object:
    """Splits a text such as ``[seed=1,data.mean=[0.4,0.5,0.5]]`` into a list of overrides; returns others unchanged.

    Snakemake reads its command line as YAML, and YAML reads a list with unquoted brackets inside as one text. The text
    is split at the commas outside of inner brackets.
    """
    if not isinstance(value, str) or not (value.startswith("[") and value.endswith("]")):
        return value
    parts, depth = [""], 0
    for letter in value[1:-1]:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _parse(overrides: Sequence[str]) -> list[Override]:
    """Parses overrides with Hydra."""
    try:
        return list(OverridesParser.create().parse_overrides(overrides=list(overrides)))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"overrides {list(overrides)}: expected key=value; {_first_line(error)}") from error


def _check_override(override: Override, conf_dir: Path, base: Mapping[str, Any]) -> None:
    """Refuses an override unless it changes an existing key or chooses an existing file."""
    text, key = override.input_line, override.key_or_group
    if override.type is None or override.type.name != "CHANGE":
        raise ConfigError(f"override {text!r}: keys can be changed, not added or removed; write key=value")
    if key in ("model", "device"):
        raise ConfigError(f"override {text!r}: choose it with --config {key}=...")
    if key in groups(conf_dir):
        _check_option(conf_dir, key, str(override.value()))
        return
    value: Any = base
    walked: list[str] = []
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = [".".join([*walked, name]) for name in value] if isinstance(value, Mapping) else []
            raise ConfigError(f"override {text!r}: {_unknown('key', key, '.'.join([*walked, part]), known)}")
        value = value[part]
        walked.append(part)


def _check_own_section(override: Override, conf_dir: Path, model: str | None) -> None:
    """Refuses another file of a group where the model's file has its own section, because both would be mixed."""
    path, group = conf_dir / "model" / f"{model}.yaml", override.key_or_group
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    except yaml.YAMLError:  # Hydra raises the error later, with a message
        return
    if isinstance(document, Mapping) and isinstance(document.get("model"), Mapping) and group in document:
        raise ConfigError(
            f"override {override.input_line!r}: {path} has its own section {group}; change the section's values "
            f"({group}.KEY=VALUE), or remove the section from the file"
        )


def _check_option(conf_dir: Path, group: str, name: str) -> None:
    """Raises ConfigError unless the group has a file of this name."""
    known = options(conf_dir, group)
    if name not in known:
        raise ConfigError(f"{_unknown(group, name, name, known)} (the files of {conf_dir / group})")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _compose(conf_dir: Path, overrides: Sequence[str]) -> Section:
    """Hydra's composition as plain values."""
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(conf_dir.resolve())):
            composed = hydra_compose(config_name="config", overrides=list(overrides))
            plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigError(f"{conf_dir}: {_first_line(error)}") from error
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def compose(conf_dir: Path, model: str | None, device: str, overrides: Sequence[str] = ()) -> Section:
    """The whole configuration as plain dictionaries.

    Args:
        conf_dir: the folder with ``config.yaml`` and the groups.
        model: a file of ``conf/model``; None takes the file that ``config.yaml`` names.
        device: a file of ``conf/device``.
        overrides: Hydra overrides that change existing keys (``finetune.epochs=1``) or choose another file of a
            group (``data=cifar10``).

    Raises:
        ConfigError: a file or a key does not exist; the message lists those that do.
        AgreementError: the resolutions of the model and of the data differ, or both are null.
    """
    named = {"device": device} if model is None else {"model": model, "device": device}
    for group, name in named.items():
        _check_option(conf_dir, group, name)
    chosen = [f"{group}={name}" for group, name in named.items()]
    parsed = _parse(overrides)
    known_groups = groups(conf_dir)
    for override in parsed:
        if override.key_or_group in known_groups:
            _check_override(override, conf_dir, {})
            _check_own_section(override, conf_dir, model)
    chosen += [override.input_line or "" for override in parsed if override.key_or_group in known_groups]
    base = _compose(conf_dir, chosen)
    values = [override for override in parsed if override.key_or_group not in known_groups]
    for override in values:
        _check_override(override, conf_dir, base)
    asked = [*chosen, *(override.input_line or "" for override in values)]
    return settle_resolution(_compose(conf_dir, asked) if values else base)


def check_files(model: Mapping[str, Any]) -> None:
    """Refuses a model whose files are missing, and a model that cannot be trained although the configuration asks.

    Raises:
        ConfigError: a file is missing, or the model cannot be trained from scratch; the message gives the reason.
    """
    source, weights = str(model.get("source") or ""), str(model.get("weights") or "")
    trained_here = weights == "pretrain"
    files = {"source": source if source.endswith(".onnx") else "", "weights": "" if trained_here else weights}
    for key, value in files.items():
        if value and not Path(value).is_file():
            raise ConfigError(
                f"model.{key}: no file {Path(value).resolve()}; put it there, or change {key} in conf/model"
            )
    if trained_here and files["source"]:
        raise ConfigError(
            f"model.weights: pretrain trains a PyTorch network from scratch, and {source} is an ONNX file; set weights "
            f"to null to take the weights of the file, or name timm:NAME or module:factory as model.source"
        )
    if trained_here and not model.get("pretrain"):
        raise ConfigError(
            "model.weights: pretrain needs the section model.pretrain with the parameters of the training; see "
            "conf/model/resnet_digits.yaml"
        )


def check_resumed(config: Mapping[str, Any]) -> None:
    """Raises ConfigError where a training shall go on from a checkpoint that is not there."""
    trainings = {"model.pretrain": config["model"]["pretrain"], "finetune": config["finetune"]}
    for name, section in trainings.items():
        path = (section or {}).get("resume_from")
        if path and not Path(path).is_file():
            raise ConfigError(
                f"{name}.resume_from: no file {Path(path).resolve()}; name a checkpoint, or set it to null"
            )


def check_named_code(section: Mapping[str, Any]) -> None:
    """Raises ConfigError where the teacher or the loss of the section ``finetune`` cannot be found."""
    for key in ("teacher", "loss"):
        module, _, name = str(section.get(key) or "").partition(":")
        if module == "timm" and key == "teacher":
            import timm

            if not timm.is_model(name):
                raise ConfigError(f"finetune.teacher: timm has no model {name!r}; name another, or set it to null")
        elif module and not _is_importable(module):
            raise ConfigError(f"finetune.{key}: there is no module {module} to import; correct it, or set it to null")


def _is_importable(module: str) -> bool:
    search_current_folder()
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def check(config: Mapping[str, Any]) -> None:
    """Checks parameters, files and data before any work, and without contacting the device.

    Args:
        config: a result of ``compose``.

    Raises:
        AutoTailorError: something is invalid; the message names the first problem and its remedy.
    """
    from autotailor import data, finetuning, profiling, search, sensitivity
    from autotailor.finetuning import polishing

    if config["model"]["pretrain"]:
        finetuning.PretrainConfig.from_section(config["model"]["pretrain"])
    finetuning.FinetuneConfig.from_section(config["finetune"])
    polishing.PolishConfig.from_section(config["polish"])
    sensitivity.SensitivityConfig.from_section(config["sensitivity"])
    search.SearchConfig.from_section(config["search"])
    device, lut = profiling.DeviceConfig.from_section(config["device"]), config["profile"]["lut"]
    if lut:
        profiling.read_table(Path(lut), device)
    else:
        profiling.check_configuration(device)
    check_files(config["model"])
    check_resumed(config)
    check_named_code(config["finetune"])
    if config["model"].get("weights") == "pretrain" and not data.has_labels(config["data"]):
        raise ConfigError(
            "model.weights: pretrain trains with labels, and data.labels is false; give the trained network "
            "(model.weights, or an .onnx file as model.source), which then teaches alone"
        )
    data.check(config["data"])
    check_classes(config["model"], config["data"])


def check_accelerators(config: Mapping[str, Any]) -> None:
    """Checks before any training that this machine has the accelerators that the configuration names.

    Raises:
        AcceleratorError: an accelerator is missing; the message says what it needs.
    """
    from autotailor.compute.accelerator import check_present

    sections = [config, *config.values(), config["model"]["pretrain"]]
    for section in sections:
        if isinstance(section, Mapping) and "accelerator" in section:
            check_present(section["accelerator"])


def check_device(config: Mapping[str, Any]) -> None:
    """Checks before any training that the device can be used; with an imported LUT (``profile.lut``) none is needed.

    Raises:
        AutoTailorError: the device cannot be used.
    """
    from autotailor import profiling

    if not config["profile"]["lut"]:
        profiling.check(profiling.DeviceConfig.from_section(config["device"]))
