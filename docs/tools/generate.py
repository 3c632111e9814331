"""Writes the two generated pages of the reference: the configuration's keys and the command line (`make docs`).

The keys come from the sections of ``autotailor.config.run.RunConfig``, their values from the files of ``conf``, the
commands from their argparse parsers. ``tests/docs/test_reference.py`` fails where a committed page is not what this
file writes. ``python docs/tools/generate.py --schemas FOLDER`` writes a JSON schema for each group of ``conf``, by
which editors complete and check its files.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import yaml

from autotailor.__main__ import COMMANDS
from autotailor.config import Cluster, CommandLine, RunConfig
from autotailor.config.recipe import Recipe
from autotailor.config.run import ModelConfig, SpaceConfig
from autotailor.data.datasets.arrays import ArraysConfig
from autotailor.data.datasets.coco import CocoConfig
from autotailor.data.datasets.folder import FolderConfig
from autotailor.data.datasets.huggingface import HuggingfaceConfig
from autotailor.data.datasets.masks import MasksConfig
from autotailor.data.datasets.series import SeriesConfig
from autotailor.data.datasets.source import SourceConfig
from autotailor.data.datasets.table import TableConfig
from autotailor.data.datasets.torchvision import TorchvisionConfig
from autotailor.data.datasets.webdataset import WebdatasetConfig
from autotailor.data.digits.config import DigitsConfig
from autotailor.exits.config import ExitsConfig
from autotailor.finetuning.config import FinetuneConfig, PretrainConfig
from autotailor.finetuning.polishing.config import NOT_OURS, PolishConfig
from autotailor.finetuning.sampling.mixed import MixedParameters
from autotailor.pool.config import PoolConfig
from autotailor.profiling import DeviceConfig
from autotailor.search import SearchConfig
from autotailor.search.cost import Counting

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
Schema = Mapping[str, Any]

TYPES = {
    "integer": "integer",
    "number": "number",
    "string": "text",
    "boolean": "true, false",
    "null": "null",
    "object": "mapping",
}
OWN_TABLE = ("pretrain", "space", "sampling")
DATA = {
    "folder": FolderConfig,
    "table": TableConfig,
    "masks": MasksConfig,
    "arrays": ArraysConfig,
    "series": SeriesConfig,
    "coco": CocoConfig,
    "source": SourceConfig,
    "huggingface": HuggingfaceConfig,
    "webdataset": WebdatasetConfig,
    "torchvision": TorchvisionConfig,
    "digits": DigitsConfig,
}
FILES = {"torchvision": "cifar10"}
DATASETS = (
    ("folder", "pictures in folders", "`kind: folder`."),
    ("table", "pictures with several labels", "`kind: table`. A CSV file gives 0 or 1 for each label."),
    ("masks", "pictures with masks", "`kind: masks`. A PNG file beside each picture gives the class of each pixel."),
    ("arrays", "signals in arrays", "`kind: arrays`. Sensors, spectrograms, images of any number of channels."),
    ("series", "recordings", "`kind: series`. Sound (`.wav`) and tables of sensors (`.csv`), cut into windows."),
    ("coco", "pictures with boxes", "`kind: coco`. COCO's JSON files give the boxes of each picture."),
    ("source", "Datasets of your own", "`kind: source`. A function of yours makes PyTorch Datasets."),
    ("huggingface", "a dataset of Hugging Face", "`kind: huggingface`, with the extra `huggingface`."),
    ("webdataset", "WebDataset shards", "`kind: webdataset`, with the extra `webdataset`."),
    (
        "torchvision",
        "a dataset of torchvision",
        "`kind: torchvision`. Its test images are halved by the seed into validation and test.",
    ),
    ("digits", "digits", "scikit-learn's handwritten digits, distorted (`name: digits`)."),
)
BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}

CONFIGURATION = """# Configuration

All parameters are in `conf/`, and Hydra composes them: `conf/config.yaml` names one file of each group (`model`,
`device`, `data`, `finetune`, `search`, `polish`, `pool`, `recipe`, `cluster`, `method`). `--config model=NAME
device=NAME` chooses a model and a device; `overrides=[KEY=VALUE,...]` changes single keys (`finetune.epochs=20`) or
takes another file (`data=cifar10`). A key that does not exist is refused, and the message lists those that do. Each
rule of the workflow is handed only the sections that it depends on, so that a change runs again what it touches
([what runs again](../guides/reruns.md)).

The tables are generated (`make docs`). `${seed}` stands for the value of the key `seed`.
"""

COMMAND_LINE = """# Command line

`autotailor run` starts the workflow; in a clone, `snakemake --config ...` ([its keys](configuration.md#command-line))
and `make run` do so as well. The other commands serve what comes before it and beside it; `python -m autotailor` is the
same as `autotailor`. Each ends with exit code 0, with 1 after an error, and with 2 where the arguments make no sense.
This page is generated (`make docs`).
"""


@dataclass(frozen=True)
class Section:
    """One table of the configuration's reference.

    Attributes:
        title: heading, with its level.
        text: what is said before the table.
        keys: schema of each key.
        source: file of ``conf`` whose values are shown, and the keys that lead to the section in it.
    """

    title: str
    text: str
    keys: Schema
    source: str
    path: tuple[str, ...] = ()


def configuration_page() -> str:
    """The page of the configuration's keys."""
    parts = [CONFIGURATION, "## Command line", "What `snakemake --config KEY=VALUE ...` takes."]
    parts.append(_table(("key", "type", "default", "meaning"), _command_rows(keys(CommandLine))))
    for section in sections():
        head = ("key", "type", "range", f"value in `{section.source}`", "meaning")
        parts += [section.title, section.text, _table(head, _rows(section))]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def sections() -> list[Section]:
    """The sections of the configuration in the order of the page."""
    config, model = "conf/config.yaml", "conf/model/resnet_digits.yaml"
    top, own = keys(RunConfig), keys(ModelConfig)
    return [
        Section("## Top level", "", {key: part for key, part in top.items() if key not in nested()}, config),
        Section("## `model`", "", own, model),
        Section("### `model.pretrain`", "", keys(PretrainConfig), model, ("pretrain",)),
        Section(
            "### `model.space`",
            "What is not listed stays as it is. `python -m autotailor inspect SOURCE --yaml` proposes a space.",
            keys(SpaceConfig),
            model,
            ("space",),
        ),
        Section("### `model.space.exits`", "Off by default ([exits](../guides/exits.md)).", keys(ExitsConfig), model),
        Section("## `device`", "", keys(DeviceConfig), "conf/device/host.yaml"),
        Section(
            "### `device` without a device",
            "With the key `cost`, budgets limit what the graph says, and nothing is measured but accuracy. There are "
            "no other keys.",
            keys(Counting),
            "conf/device/macs.yaml",
        ),
        *(
            Section(f"## `data`: {title}", text, keys(DATA[kind]), f"conf/data/{FILES.get(kind, kind)}.yaml")
            for kind, title, text in DATASETS
        ),
        Section(
            "## `finetune`",
            "Other files of `conf/finetune` differ in the strategy and in what suits it. `common/training.yaml` holds "
            "the values that they share.",
            keys(FinetuneConfig),
            "conf/finetune/mixed.yaml",
        ),
        Section(
            "### `finetune.sampling`",
            "Of the strategy `mixed`; others have no parameters.",
            keys(MixedParameters),
            "conf/finetune/mixed.yaml",
            ("sampling",),
        ),
        Section(
            "## `cluster`",
            "What jobs get where they are computed. `--config cluster=NAME` chooses the file "
            "([clusters](../guides/cluster.md)). No key of it changes a result, and no change of it runs a rule again.",
            keys(Cluster),
            "conf/cluster/slurm.yaml",
        ),
        Section("## `search`", "", keys(SearchConfig), "conf/search/default.yaml"),
        Section(
            "## `polish`",
            "Training of single SubNets before they are exported.",
            {key: part for key, part in keys(PolishConfig).items() if key not in NOT_OURS},
            "conf/polish/default.yaml",
        ),
        Section(
            "## `recipe`",
            "How much a run trains and evaluates: factors of what the other sections say, rounded, and at least 1 "
            "where the section says more than 0. `--config recipe=quick` (`make run RECIPE=quick`, `autotailor run "
            "recipe=quick`) gives a first answer, `recipe=thorough` takes longer, and `make run` takes "
            "`recipe=demonstration`, which conf/model/resnet_digits.yaml names. Keys that `overrides` change stay as "
            "they are there.",
            keys(Recipe),
            "conf/recipe/default.yaml",
        ),
        Section(
            "## `pool`",
            "SubNets that share one file of weights ([pools](../guides/pool.md)). "
            "The rules `train_pool` and `make_pool` read it.",
            keys(PoolConfig),
            "conf/pool/default.yaml",
        ),
        *(
            Section(
                f"## `{name}`",
                "",
                {k: v for k, v in keys(nested()[name]).items() if k != "calibration"},
                config,
                (name,),
            )
            for name in (
                "moments",
                "distil",
                "sensitivity",
                "profile",
                "validate",
                "confirm",
                "measure",
                "export",
                "compare",
            )
        ),
    ]


def nested() -> dict[str, Any]:
    """The sections of a run by their keys; None where one of several classes reads the section."""
    hints = get_type_hints(RunConfig)
    classes = {name: kind if hasattr(kind, "SECTION") else None for name, kind in hints.items()}
    return {name: kind for name, kind in classes.items() if kind or name in ("device", "data")}


def keys(section: Any) -> Schema:
    """The schemas of the keys of a section, with those of nested sections in their place."""
    schema = section.schema()

    def filled(part: Any) -> Any:
        if isinstance(part, list):
            return [filled(each) for each in part]
        if not isinstance(part, dict):
            return part
        name = part.get("$ref", "").removeprefix("#/$defs/")
        whole = {**schema["$defs"][name], **part} if name else part
        return {key: filled(value) for key, value in whole.items() if key not in ("$ref", "$defs", "title")}

    found: Schema = filled(schema["properties"])
    return found


def _command_rows(parts: Schema) -> Iterator[tuple[str, ...]]:
    for key, part in parts.items():
        kind = "name of a rule, or a list" if key == "keep" else _type(part)
        yield f"`{key}`", kind, _value(part.get("default"), "default" in part), _sentence(part)


def _rows(section: Section) -> Iterator[tuple[str, ...]]:
    values = _values(ROOT / section.source)
    for name in section.path:
        values = values[name]
    return _key_rows(section.keys, values, "")


def _values(path: Path) -> Mapping[str, Any]:
    """The values of a file of ``conf``, with those of the files that its ``defaults`` take in (``FILE@_here_``)."""
    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    entries = [entry for entry in own.pop("defaults", ()) if isinstance(entry, str)]
    taken = [path.parent / f"{entry.removesuffix('@_here_')}.yaml" for entry in entries if entry.endswith("@_here_")]
    return {key: value for other in taken for key, value in _values(other).items()} | own


def _key_rows(keys: Schema, values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    """One row for each key; keys of a nested section follow it."""
    for key, part in keys.items():
        is_elsewhere = f"{prefix}{key}" in OWN_TABLE or isinstance(values.get(key), str)
        inner, value = None if is_elsewhere else part.get("properties"), ""
        if not inner and f"{prefix}{key}" not in OWN_TABLE:
            value = _value(values.get(key, part.get("default")), key in values or "default" in part)
        yield f"`{prefix}{key}`", _type(part), _range(part), value, _sentence(part)
        if inner:
            yield from _key_rows(inner, values.get(key, {}), f"{prefix}{key}.")


def _type(part: Schema) -> str:
    if "anyOf" in part:
        return " or ".join(_type(option) for option in part["anyOf"])
    if "prefixItems" in part:
        part = {**part, "items": part["prefixItems"][0]}
    if "enum" in part:
        return "one of " + ", ".join(f"`{name}`" for name in part["enum"])
    kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
    if kinds == ["array"]:
        items = part["items"].get("type", "string")  # of several types
        return "list of " + " or ".join(f"{TYPES[k]}s" for k in (items if isinstance(items, list) else [items]))
    return " or ".join(TYPES[kind] for kind in kinds)


def _range(part: Schema) -> str:
    """Bounds of a number, or of the numbers of a list."""
    for option in part.get("anyOf", ()):
        if said := _range(option):
            return said
    inner = [part["items"]] if isinstance(part.get("items"), dict) else part.get("prefixItems", ())
    said = ", ".join(text.format(f"{part[key]:.12g}") for key, text in BOUNDS.items() if key in part)
    return said or (_range(inner[0]) if inner else "")


def _value(value: object, is_there: bool = True) -> str:
    if not is_there or value == "":
        return ""
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _sentence(part: Schema) -> str:
    text = " ".join(part.get("description", "").split())
    return text[:1].upper() + text[1:]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def command_page() -> str:
    """The page of the commands."""
    parser = argparse.ArgumentParser(prog="autotailor")
    commands = parser.add_subparsers()
    for command in COMMANDS:
        command.add_command(commands)
    parts = [COMMAND_LINE]
    for name, inner in commands.choices.items():
        parts += _command(f"autotailor {name}", inner, "##")
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _command(name: str, parser: argparse.ArgumentParser, level: str) -> Iterator[str]:
    """Heading, description and table of one command, then its own commands."""
    yield f"{level} `{name}`"
    yield parser.description or ""
    actions = [action for action in parser._actions if action.dest != "help" and action.help != argparse.SUPPRESS]
    inner = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    if rows := [_argument(action) for action in actions if action not in inner]:
        yield _table(("argument", "default", "meaning"), rows)
    for action in inner:
        said = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for word, child in action.choices.items():
            child.description = child.description or said[word][:1].upper() + said[word][1:] + "."
            yield from _command(f"{name} {word}", child, f"{level}#")


def _argument(action: argparse.Action) -> tuple[str, str, str]:
    """One row: what is written, what holds without it, what it means."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
    shown = action.metavar or choices or action.dest.upper()
    values = " ".join(shown) if isinstance(shown, tuple) else str(shown)
    if not action.option_strings:
        values = action.metavar if isinstance(action.metavar, str) else action.dest
        text = f"{values} ..." if action.nargs == "*" else values
        return f"`{text}`", "" if action.nargs in ("?", "*") else "required", _meaning(action)
    is_flag = action.nargs == 0
    text = action.option_strings[-1] + ("" if is_flag else f" {values}")
    default = "" if is_flag or action.default in (None, False, [], argparse.SUPPRESS) else f"`{action.default}`"
    return f"`{text}`", "required" if action.required else default, _meaning(action)


def _meaning(action: argparse.Action) -> str:
    """The help of an argument, in which argparse wants a percent sign twice."""
    return (action.help or "").replace("%%", "%")


PAGES = {"configuration.md": configuration_page, "cli.md": command_page}


def schemas() -> dict[str, Schema]:
    """A JSON schema for the files of each group of ``conf``, and for ``config.yaml``; a method may change any key.

    A file may leave keys to others (``defaults``), and take values from other keys (``${seed}``).
    """
    groups = {name: [kind] for name, kind in nested().items() if kind}
    groups |= {"device": [DeviceConfig, Counting], "data": list(DATA.values())}
    groups |= {"config": [RunConfig], "method": [RunConfig]}
    files = {name: [_of_a_file({"properties": keys(kind)}) for kind in kinds] for name, kinds in groups.items()}
    return {name: {"anyOf": found} for name, found in files.items()}


def _of_a_file(part: Any) -> Any:
    """A schema of which keys may be missing and stand for others, at any depth."""
    if isinstance(part, list):
        return [_of_a_file(each) for each in part]
    if not isinstance(part, dict):
        return part
    if "properties" not in part:
        return {key: _of_a_file(value) for key, value in part.items()}
    taken = {"type": "string", "pattern": r"\$\{"}
    inner = {
        key: {"anyOf": [_of_a_file(each), taken], "description": each["description"]}
        for key, each in part["properties"].items()
    }
    return {"type": "object", "additionalProperties": False, "properties": {**inner, "defaults": {"type": "array"}}}


def main() -> None:
    """Writes both pages, or the schemas."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--schemas", type=Path, metavar="FOLDER", help="write GROUP.schema.json into this folder instead"
    )
    if folder := parser.parse_args().schemas:
        folder.mkdir(parents=True, exist_ok=True)
        for name, schema in schemas().items():
            (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=1), encoding="utf-8")
        return
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
