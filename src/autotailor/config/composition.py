"""Composes the configuration in ``conf/`` with Hydra.

``compose`` returns plain dictionaries instead of OmegaConf objects. Each rule gets only the sections that it depends
on.

Some files of conf depend on where the weights come from, unless the user names others. Weights that the workflow trains
from scratch gain by joint training. Weights that arrive trained lose by it what the pictures at hand cannot give back,
so that SubNets are polished alone.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import ConfigCompositionException, HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

from autotailor.agreement import settle_resolution
from autotailor.config.names import ConfigError, check_option, files, find_file, groups, unknown
from autotailor.config.recipe import with_recipe
from autotailor.ir.errors import first_line
from autotailor.project import places

Section = dict[str, Any]
SHARED = ("seed", "precision", "accelerator", "processes", "nodes")
"""Keys of the top level that hold for every training which names none of its own."""
SPACE = "model.space"
"""The section whose keys a model's file may leave out, and an override may name nevertheless."""
EXITS = "exits"
"""The section of the space of which the same holds."""
FIRST = "first_data"
"""Where Hydra puts the section of data that a stage of ``finetune`` names."""
AS_TASK = ("resolution", "mean", "std", "interpolation", "workers", "memory_gib", "cache")
"""Keys of such data that are those of the task's own."""
COMPOSING = " raised while composing config:"
"""How the first line of Hydra's message on a file ends whose values do not fit those of the file that it builds on."""

AUTO, PRETRAIN = "auto", "pretrain"
ARRIVED = {"finetune": "none", "polish": "given"}
"""The file of each group for weights that arrive; ``auto`` itself is that for weights that the workflow trains."""


class OwnConfiguration(SearchPathPlugin):  # type: ignore[misc]
    """Lets Hydra look into autotailor's own folder for what the user's folder lacks, ``config.yaml`` included."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Adds the folder behind that of the user, unless they are the same."""
        own = f"file://{places.CONF.resolve()}"
        if own not in [element.path for element in search_path.get_path()]:
            search_path.append("autotailor", own)


Plugins.instance().register(OwnConfiguration)


def compose(
    conf_dir: Path, model: str | None, device: str, overrides: Sequence[str] = (), cluster: str | None = None
) -> Section:
    """The whole configuration as plain dictionaries.

    Args:
        conf_dir: the user's folder of configuration files. Autotailor's own folder stands behind it (``search_path``).
        model: a file of ``conf/model``; None takes the file that ``config.yaml`` names.
        device: a file of ``conf/device``.
        overrides: Hydra overrides that change existing keys (``finetune.epochs=1``) or choose another file of a
            group (``data=cifar10``).
        cluster: a file of ``conf/cluster``; None takes the file that ``config.yaml`` names.

    Raises:
        ConfigError: a file or a key does not exist; the message lists those that do.
        AgreementError: the resolutions of the model and of the data differ, or both are null.
    """
    asked_for = {"model": model, "device": device, "cluster": cluster}
    named = {group: name for group, name in asked_for.items() if name is not None}
    for group, name in named.items():
        check_option(conf_dir, group, name)
        _check_content(conf_dir, group, name)
    chosen = [f"{group}={name}" for group, name in named.items()]
    parsed = parse(overrides)
    known_groups = groups(conf_dir)
    for override in parsed:
        if override.key_or_group in known_groups:
            check_override(override, conf_dir, {})
            check_own_section(override, conf_dir, model)
    chosen += [override.input_line or "" for override in parsed if override.key_or_group in known_groups]
    values = [override for override in parsed if override.key_or_group not in known_groups]
    composed, choices = _compose(conf_dir, chosen)
    keys = {override.key_or_group: override for override in values}
    weights = keys["model.weights"].value() if "model.weights" in keys else composed["model"].get("weights")
    if arrived := for_arrived(weights, choices, keys, composed.get("sensitivity", {}).get("judge")):
        chosen += arrived
        composed, _ = _compose(conf_dir, chosen)
    base = _with_shared(composed)
    optional = _optional(base, keys)
    for override in values:
        check_override(override, conf_dir, _with_keys(base, optional))
    lines = [*chosen, *(_asked(override, optional) for override in values)]
    whole = _with_shared(_compose(conf_dir, lines)[0]) if values else base
    return _with_stages(settle_resolution(with_recipe(whole, keys)), conf_dir, lines)


def _with_stages(config: Section, conf_dir: Path, lines: Sequence[str]) -> Section:
    """The configuration, whose stages of ``finetune`` have the sections of the data that they name.

    Their pictures are prepared and read as those of the task are, because one network sees both.
    """
    finetune, data = config.get("finetune"), config.get("data")
    if not (isinstance(finetune, dict) and isinstance(finetune.get("stages"), list) and isinstance(data, dict)):
        return config  # refused later, with a message

    def named(stage: Any) -> Any:
        if not isinstance(stage, dict) or not isinstance(name := stage.get("data"), str):
            return stage
        check_option(conf_dir, "data", name)
        section = _compose(conf_dir, [*lines, f"+data@{FIRST}={name}"])[0][FIRST]
        same = {key: data[key] for key in AS_TASK if key in section and data.get(key) not in (None, [])}
        return {**stage, "data": {**section, **same}}

    return {**config, "finetune": {**finetune, "stages": [named(stage) for stage in finetune["stages"]]}}


def _asked(override: Override, optional: Collection[str]) -> str:
    """An override as Hydra takes it, which without ``++`` changes no key that the files leave out."""
    line, added = override.input_line or "", [f"model.pretrain.{key}" for key in SHARED]
    return f"++{line}" if override.key_or_group in [*added, *(f"{SPACE}.{key}" for key in optional)] else line


def _optional(base: Section, keys: Collection[str]) -> list[str]:
    """The keys of the space and of its exits that the model's file leaves out, where an override changes the space."""
    if not any(key.startswith(f"{SPACE}.") for key in keys):
        return []
    from autotailor.exits.config import ExitsConfig
    from autotailor.ir.proposal.request import KEYS

    model = base["model"]
    space = model.get("space") if isinstance(model, dict) else None
    if not isinstance(space, dict):
        return []
    exits = space.get(EXITS)
    of_exits = [f"{EXITS}.{each.name}" for each in fields(ExitsConfig) if each.name not in exits] if exits else []
    return [*(key for key in KEYS if key not in space), *of_exits]


def _with_keys(base: Section, keys: Collection[str]) -> Section:
    """The configuration with keys of the space that its files leave out."""
    if not keys:
        return base
    model: Any = base["model"]
    space = {**dict.fromkeys(key for key in keys if "." not in key), **model["space"]}
    if of_exits := [key.partition(".")[2] for key in keys if "." in key]:
        space[EXITS] = {**dict.fromkeys(of_exits), **space[EXITS]}
    return {**base, "model": {**model, "space": space}}


def _with_shared(composed: Section) -> Section:
    """The configuration, whose section ``model.pretrain`` takes from the top level what it leaves out of ``SHARED``."""
    model = composed["model"]
    if not isinstance(model, dict) or not isinstance(model.get("pretrain"), dict) or not model["pretrain"]:
        return composed
    shared = {key: composed[key] for key in SHARED if key in composed}
    return {**composed, "model": {**model, "pretrain": {**shared, **model["pretrain"]}}}


def _check_content(conf_dir: Path, group: str, name: str) -> None:
    """Refuses a file without keys, which a command that has failed leaves where its output went into the file."""
    path = find_file(conf_dir, f"{group}/{name}.yaml")
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError):  # Hydra raises the error later, with a message
        return
    if not document or not isinstance(document, dict):
        content = "is empty" if document is None else f"holds {document!r} and no keys with values"
        writes = "; `python -m autotailor inspect SOURCE --data FOLDER --yaml` prints what belongs into it"
        raise ConfigError(f"{path} {content}: write it{writes if group == 'model' else ''}")


def _compose(conf_dir: Path, overrides: Sequence[str]) -> tuple[Section, dict[str, str]]:
    """Hydra's composition as plain values, and the name of the file of each group."""
    state = tuple((str(path), (status := path.stat()).st_mtime_ns, status.st_size) for path in files(conf_dir))
    return deepcopy(_composed(conf_dir.resolve(), tuple(overrides), state))


@lru_cache(maxsize=64)
def _composed(
    conf_dir: Path, overrides: tuple[str, ...], state: tuple[tuple[str, int, int], ...]
) -> tuple[Section, dict[str, str]]:
    """What Hydra composes of files in a state, which it takes a tenth of a second for."""
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(conf_dir)):
            composed = hydra_compose(config_name="config", overrides=list(overrides), return_hydra_config=True)
            choices = {str(group): str(name) for group, name in composed.hydra.runtime.choices.items()}
            with open_dict(composed):
                del composed["hydra"]
            plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(_no_yaml(error, conf_dir)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(_no_text(conf_dir)) from error
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise ConfigError(f"{conf_dir}: {_with_cause(error)}") from error
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}, choices


def _no_yaml(error: yaml.MarkedYAMLError, conf_dir: Path) -> str:
    """The file, the line and the reason of an error in the form of a file of the configuration."""
    mark = error.problem_mark or error.context_mark
    place = f"{mark.name}, line {mark.line + 1}" if mark is not None else str(conf_dir)
    return f"{place} is no valid YAML: {error.problem or first_line(error)}; correct that line, or the one before it"


def _no_text(conf_dir: Path) -> str:
    """The first file that Hydra cannot decode; its error does not name the file."""
    for path in files(conf_dir):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            return f"{path} is no text in UTF-8 ({error}); store it in that encoding"
    return f"{conf_dir}: a file is no text in UTF-8; store it in that encoding"


def _with_cause(error: Exception) -> str:
    """The first line of an error, and that of its cause: Hydra says alone that an override does not fit, not why."""
    if isinstance(error, InterpolationKeyError) and (missing := re.search("'(.+?)' not found", first_line(error))):
        group, _, key = missing[1].partition(".")
        return (
            f"{error.full_key} takes the value of {missing[1]}, which no file gives: write {key or group} into the "
            f"file of the {group}, as the others of {group}/ have it"
        )
    first, *rest = str(error).strip().splitlines() or [""]
    if isinstance(error, ConfigCompositionException) and first.endswith(COMPOSING) and rest:
        return (
            f"{first.partition(':')[0]}: {rest[0]}; a file that builds on another one (defaults) changes values and "
            f"keys of mappings, and gives no list in the place of a mapping, nor a mapping in that of a list"
        )
    if not isinstance(error, ConfigCompositionException) or not isinstance(error.__cause__, OmegaConfBaseException):
        return first_line(error)
    return (
        f"{first_line(error).rstrip('.')}: {first_line(error.__cause__)}. An override changes a value, or keys that a "
        f"mapping has; write other keys, or a list in the place of a mapping, into the file itself"
    )


def for_arrived(weights: Any, choices: Mapping[str, str], named: Collection[str], judge: str | None) -> list[str]:
    """Overrides that choose the files of weights that arrive, and what judges SubNets, where ``auto`` was chosen.

    Args:
        weights: ``model.weights``.
        choices: name of the file of each group.
        named: dotted keys that the user's overrides change; a rate that is named takes the place of the range test.
        judge: ``sensitivity.judge`` of the files.
    """
    if weights == PRETRAIN:
        return []
    options = [f"{group}={name}" for group, name in ARRIVED.items() if choices.get(group) == AUTO]
    options += ["sensitivity.judge=divergence"] if judge == AUTO else []
    is_given = "polish=given" in options or choices.get("polish") == ARRIVED["polish"]
    if is_given and "polish.lr" in named and "polish.rates" not in named:
        options.append("polish.rates=[]")
    return options


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
            names = [".".join([*walked, name]) for name in value] if isinstance(value, Mapping) else []
            raise ConfigError(f"override {text!r}: {unknown('key', key, '.'.join([*walked, part]), names)}")
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
