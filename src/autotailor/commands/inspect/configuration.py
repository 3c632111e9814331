"""The configuration that ``inspect --yaml`` prints: a file for ``conf/model``, with the data of ``--data``."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from autotailor.commands.inspect.alternatives import usual
from autotailor.commands.inspect.backgrounds import transparent_lines
from autotailor.commands.inspect.own_data import OwnData, class_lines, data_lines, is_of_timm, preprocessing
from autotailor.commands.inspect.tables import magnitude
from autotailor.ir.dimensions.dimension import RESOLUTION

if TYPE_CHECKING:
    from autotailor.commands.inspect.own_signals import OwnSignals
    from autotailor.ir.supernet import SuperNet

NO_DATA = "# Data: `inspect --data FOLDER` adds a section for your pictures; or override it: overrides=[data=NAME]."
SPACE = (
    "# depth: blocks removed from the end of a stage; width: ratios of a stage's width; blocks: by kind, or by",
    "# the name of a single block; skip: variables to leave out. What is not listed stays unmodified.",
)
ALTERNATIVES = (
    "What may stand in for maps and blocks, if you ask for it: more operators to measure, and a longer training;",
    "what is never faster is left out (docs/results/branches.md says what it gains).",
)
SIDES = (
    "# resolution is left out: heads tell lengths in cells or pixels, so that a SubNet for smaller pictures becomes no",
    "# better than your network is on these. Where that is good enough, list sides (docs/guides/detection.md).",
)
INDENT = 2
"""Columns of one level of YAML."""


def model_section(net: SuperNet, options: argparse.Namespace) -> dict[str, Any]:
    """The ``model`` section whose space is that of the network."""
    return {
        "name": re.sub(r"\W+", "_", net.name).strip("_").lower() or "mine",
        "source": str(options.source).replace("${", "\\${"),
        "weights": None if options.weights is None else str(options.weights).replace("${", "\\${"),
        "resolution": net.input_shape[-1],
        "num_classes": net.num_classes or None,
        "pretrain": None,
        **({} if options.batch_norm == "auto" else {"batch_norm": options.batch_norm}),
        **({} if options.output is None else {"output": options.output}),
        "space": net.space_section(),
    }


def model_configuration(net: SuperNet, options: argparse.Namespace) -> str:
    """A file for ``conf/model`` without data; a run takes the data of ``conf/config.yaml`` or of an override."""
    lines = (_origin(net, options), NO_DATA, *SPACE)
    return "\n".join(lines) + "\n" + _dump(model_section(net, options)) + _alternatives(net, " " * INDENT)


def whole_configuration(net: SuperNet, options: argparse.Namespace, own: OwnData | OwnSignals) -> str:
    """A file for ``conf/model`` with a section for its data.

    Raises:
        DataError: some pictures cannot be used.
    """
    said = own.lines() if not isinstance(own, OwnData) else _of_pictures(net, options, own)
    lines = [
        "# @package _global_",
        _origin(net, options),
        f"defaults: [{{override /data: {own.kind}}}]  "
        f"# conf/data/{own.kind}.yaml: all keys of the data and their defaults",
        "",
        *said,
        "",
        *SPACE,
        *(SIDES if isinstance(own, OwnData) and own.files and RESOLUTION not in net.space.positions else ()),
    ]
    section = model_section(net, options) | ({} if isinstance(own, OwnData) else {"resolution": None})
    return "\n".join(lines) + "\n" + _dump({"model": section}) + _alternatives(net, " " * 2 * INDENT)


def _alternatives(net: SuperNet, indent: str) -> str:
    """Comment lines, the last of ``space``, with the alternatives that the network can have and the space has not."""
    asked = {} if (net.space_config or {}).get("alternatives") else usual(net)
    section = yaml.safe_dump({"alternatives": asked}, default_flow_style=True, sort_keys=False, width=1000)
    lines = (*ALTERNATIVES, section.strip()[1:-1]) if asked else ()
    return "".join(f"{indent}# {line}\n" for line in lines)


def _of_pictures(net: SuperNet, options: argparse.Namespace, own: OwnData) -> list[str]:
    """The data section of pictures, with comments."""
    side = net.input_shape[-1]
    is_bytes = net.graph.given.is_bytes
    prepared, measured = preprocessing(own, options.source, side, options.mean, options.std, is_bytes=is_bytes)
    return [
        *class_lines(own),
        *own.rare_lines(),
        *transparent_lines(own, net, options, (prepared, measured)),
        *data_lines(own, prepared, measured, side, is_assumed=_side_is_assumed(options)),
    ]


def _side_is_assumed(options: argparse.Namespace) -> bool:
    """Whether neither the source nor an option says for how large pictures the network is."""
    return options.resolution is None and not options.source.endswith(".onnx") and not is_of_timm(options.source)


def _origin(net: SuperNet, options: argparse.Namespace) -> str:
    """A comment with the command that writes the same file again."""
    given = {
        "--data": options.data,
        "--weights": options.weights,
        "--resolution": options.resolution,
        "--batch-norm": None if options.batch_norm == "auto" else options.batch_norm,
        "--output": ",".join(options.output) if isinstance(options.output, list) else options.output,
        "--mean": options.mean,
        "--std": options.std,
        "--task": options.task,
    }
    arguments = ["--random-weights"] if options.random_weights else []
    for option, value in given.items():
        if value is not None:
            arguments += [option, *(str(each) for each in (value if isinstance(value, list) else [value]))]
    command = shlex.join(["python", "-m", "autotailor", "inspect", options.source, *arguments, "--yaml"])
    size = f"{net.space.num_modifications} modifications, {magnitude(net.space.num_distinct)} SubNets"
    return f"# From `{command}`: {size}.".replace("\n", "?")


def _dump(section: dict[str, Any]) -> str:
    return str(yaml.safe_dump(section, default_flow_style=None, sort_keys=False, width=100, allow_unicode=True))
