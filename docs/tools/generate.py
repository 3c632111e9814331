"""Writes the two generated pages of the reference: the configuration's keys and the command line (`make docs`).

The keys come from the schemas in ``workflow/schemas``, their values from the files of ``conf``, the commands from their
argparse parsers. ``tests/docs/test_reference.py`` fails where a committed page is not what this file writes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autotailor.__main__ import COMMANDS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SCHEMAS = ROOT / "workflow" / "schemas"
Schema = Mapping[str, Any]

TYPES = {
    "integer": "integer",
    "number": "number",
    "string": "text",
    "boolean": "true, false",
    "null": "null",
    "object": "mapping",
}
OWN_TABLE = ("pretrain", "space")
NOT_SHARED = {"polish": {"epochs", "keep", "panel", "resume_from"}}
"""Keys of ``training`` that a section does not have."""
BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}

CONFIGURATION = """# Configuration

All parameters are in `conf/`, and Hydra composes them: `conf/config.yaml` names one file of each group (`model`,
`device`, `data`, `finetune`, `search`, `polish`, `pool`, `recipe`, `cluster`). `--config model=NAME device=NAME`
chooses a model and a device; `overrides=[KEY=VALUE,...]` changes single keys (`finetune.epochs=20`) or takes another
file (`data=cifar10`). A key that does not exist is refused, and the message lists those that do. Each rule of the
workflow is handed only the sections that it depends on, so that a change runs again what it touches ([what runs
again](../guides/reruns.md)).

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
    command = yaml.safe_load((SCHEMAS / "config.schema.yaml").read_text(encoding="utf-8"))
    parts = [CONFIGURATION, "## Command line", "What `snakemake --config KEY=VALUE ...` takes."]
    parts.append(_table(("key", "type", "default", "meaning"), _command_rows(command)))
    for section in sections():
        head = ("key", "type", "range", f"value in `{section.source}`", "meaning")
        parts += [section.title, section.text, _table(head, _rows(section))]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def sections() -> list[Section]:
    """The sections of the configuration in the order of the page."""
    schema = yaml.safe_load((SCHEMAS / "conf.schema.yaml").read_text(encoding="utf-8"))
    top, described = schema["properties"], {name: part["properties"] for name, part in schema["$defs"].items()}
    single = {key: part for key, part in top.items() if part.get("type") != "object"}
    pictures, config = described["pictures"], "conf/config.yaml"
    return [
        Section("## Top level", "", single, config),
        Section("## `model`", "", top["model"]["properties"], "conf/model/resnet_digits.yaml"),
        Section(
            "### `model.pretrain`",
            "",
            described["training"] | described["pretrain"],
            "conf/model/resnet_digits.yaml",
            ("pretrain",),
        ),
        Section(
            "### `model.space`",
            "What is not listed stays as it is. `python -m autotailor inspect SOURCE --yaml` proposes a space.",
            described["space"],
            "conf/model/resnet_digits.yaml",
            ("space",),
        ),
        Section("## `device`", "", described["device"], "conf/device/host.yaml"),
        Section(
            "### `device` without a device",
            "With the key `cost`, budgets limit what the graph says, and nothing is measured but accuracy. There are "
            "no other keys.",
            described["counting"],
            "conf/device/macs.yaml",
        ),
        Section(
            "## `data`: pictures in folders", "`kind: folder`.", pictures | described["folder"], "conf/data/folder.yaml"
        ),
        Section(
            "## `data`: Datasets of your own",
            "`kind: source`. A function of yours makes PyTorch Datasets.",
            pictures | described["source"],
            "conf/data/source.yaml",
        ),
        Section(
            "## `data`: a dataset of Hugging Face",
            "`kind: huggingface`, with the extra `huggingface`.",
            pictures | described["huggingface"],
            "conf/data/huggingface.yaml",
        ),
        Section(
            "## `data`: WebDataset shards",
            "`kind: webdataset`, with the extra `webdataset`.",
            pictures | described["webdataset"],
            "conf/data/webdataset.yaml",
        ),
        Section(
            "## `data`: a dataset of torchvision",
            "`kind: torchvision`. Its test images are halved by the seed into validation and test.",
            pictures | described["torchvision"],
            "conf/data/cifar10.yaml",
        ),
        Section(
            "## `data`: digits",
            "scikit-learn's handwritten digits, distorted (`name: digits`).",
            described["digits"],
            "conf/data/digits.yaml",
        ),
        Section(
            "## `finetune`",
            "Other files of `conf/finetune` differ in the strategy and in what suits it. `common/training.yaml` holds "
            "the values that they share.",
            described["training"] | described["finetune"],
            "conf/finetune/mixed.yaml",
        ),
        Section(
            "## `cluster`",
            "What jobs get where they are computed. `--config cluster=NAME` chooses the file "
            "([clusters](../guides/cluster.md)). No key of it changes a result, and no change of it runs a rule again.",
            described["cluster"],
            "conf/cluster/slurm.yaml",
        ),
        Section("## `search`", "", described["search"], "conf/search/default.yaml"),
        Section(
            "## `polish`",
            "Training of single SubNets before they are exported.",
            {key: described["training"][key] for key in described["training"] if key not in NOT_SHARED["polish"]}
            | described["polish"],
            "conf/polish/default.yaml",
        ),
        Section(
            "## `recipe`",
            "How much a run trains and evaluates: factors of what the other sections say, rounded, and at least 1 "
            "where the section says more than 0. `--config recipe=quick` (`make run RECIPE=quick`, `autotailor run "
            "recipe=quick`) gives a first answer, `recipe=thorough` takes longer, and `make run` takes "
            "`recipe=demonstration`, which conf/model/resnet_digits.yaml names. Keys that `overrides` change stay as "
            "they are there.",
            described["recipe"],
            "conf/recipe/default.yaml",
        ),
        Section(
            "## `pool`",
            "SubNets that share one file of weights ([pools](../guides/pool.md)). "
            "The rules `train_pool` and `make_pool` read it.",
            described["pool"],
            "conf/pool/default.yaml",
        ),
        Section("## `sensitivity`", "", described["sensitivity"], config, ("sensitivity",)),
        *(
            Section(f"## `{name}`", "", top[name]["properties"], config, (name,))
            for name in ("profile", "validate", "confirm", "measure", "export", "compare")
        ),
    ]


def _command_rows(schema: Schema) -> Iterator[tuple[str, ...]]:
    for key, part in schema["properties"].items():
        kind = "name of a rule, or a list" if "anyOf" in part else _type(part)
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
        nested, value = part.get("properties"), ""
        if not nested and f"{prefix}{key}" not in OWN_TABLE:
            value = _value(values.get(key, part.get("default")), key in values or "default" in part)
        yield f"`{prefix}{key}`", _type(part), _range(part), value, _sentence(part)
        if nested:
            yield from _key_rows(nested, values.get(key, {}), f"{prefix}{key}.")


def _type(part: Schema) -> str:
    if "anyOf" in part:
        return " or ".join(_type(option) for option in part["anyOf"])
    if "enum" in part:
        return "one of " + ", ".join(f"`{name}`" for name in part["enum"])
    kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
    if kinds == ["array"]:
        items = part["items"]["type"]
        return "list of " + " or ".join(f"{TYPES[k]}s" for k in (items if isinstance(items, list) else [items]))
    return " or ".join(TYPES[kind] for kind in kinds)


def _range(part: Schema) -> str:
    """Bounds of a number, or of the numbers of a list."""
    for option in part.get("anyOf", ()):
        if said := _range(option):
            return said
    return ", ".join(text.format(part[key]) for key, text in BOUNDS.items() if key in part) or (
        _range(part["items"]) if "items" in part else ""
    )


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


def main() -> None:
    """Writes both pages."""
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
