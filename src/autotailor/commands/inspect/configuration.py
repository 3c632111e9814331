"""What ``inspect --yaml`` prints: a file for ``conf/model``, with the data of ``--data`` and their background."""

from __future__ import annotations

import argparse
import re
import shlex
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml  # type: ignore[import-untyped]

from autotailor.commands.inspect.own_data import (
    OwnData,
    Preprocessing,
    class_lines,
    crop_of,
    data_lines,
    is_of_timm,
    preprocessing,
)
from autotailor.data.files.contents import cores

if TYPE_CHECKING:
    from autotailor.data.pictures.statistics import PictureStatistics
    from autotailor.ir.supernet import SuperNet

NO_DATA = "# Data: `inspect --data FOLDER` adds a section for your pictures; or override it: overrides=[data=NAME]."
SPACE = (
    "# depth: blocks removed from the end of a stage; width: ratios of a stage's width; blocks: by kind, or by",
    "# the name of a single block; alternatives: what may stand in for maps and blocks, such as {low_rank: [0.75],",
    "# depthwise: true, merged: [1, 2]}; skip: variables to leave out. What is not listed stays unmodified.",
)

LOOKED_AT = 2000  # pictures, for transparency


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
    return "\n".join(lines) + "\n" + _dump(model_section(net, options))


def whole_configuration(net: SuperNet, options: argparse.Namespace, own: OwnData) -> str:
    """A file for ``conf/model`` with a section for its data.

    Raises:
        DataError: some pictures cannot be used.
    """
    side = net.input_shape[-1]
    is_bytes = net.graph.given.is_bytes
    prepared, measured = preprocessing(own, options.source, side, options.mean, options.std, is_bytes=is_bytes)
    lines = [
        "# @package _global_",
        _origin(net, options),
        f"defaults: [{{override /data: {own.kind}}}]  "
        f"# conf/data/{own.kind}.yaml: all keys of the data and their defaults",
        "",
        *class_lines(own),
        *own.rare_lines(),
        *transparent_lines(own, net, options, (prepared, measured)),
        *data_lines(own, prepared, measured, side, is_assumed=_side_is_assumed(options)),
        "",
        *SPACE,
    ]
    return "\n".join(lines) + "\n" + _dump({"model": model_section(net, options)})


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
        "--output": options.output,
        "--mean": options.mean,
        "--std": options.std,
    }
    asked = ["--random-weights"] if options.random_weights else []
    for option, value in given.items():
        if value is not None:
            asked += [option, *(str(each) for each in (value if isinstance(value, list) else [value]))]
    command = shlex.join(["python", "-m", "autotailor", "inspect", options.source, *asked, "--yaml"])
    found = f"{net.space.num_modifications} modifications, {net.space.num_distinct:.3g} SubNets"
    return f"# From `{command}`: {found}.".replace("\n", "?")


def _dump(section: dict[str, Any]) -> str:
    return str(yaml.safe_dump(section, default_flow_style=None, sort_keys=False, width=100, allow_unicode=True))


def transparent_lines(
    own: OwnData,
    net: SuperNet,
    options: argparse.Namespace,
    prepared: tuple[Preprocessing, PictureStatistics] | None = None,
) -> list[str]:
    """Comments that count pictures with transparency, among at most ``LOOKED_AT``; none without such pictures.

    Args:
        own: the pictures.
        net: the network, whose accuracy over the backgrounds is compared where weights and pictures allow it.
        options: of the command.
        prepared: as ``preprocessing`` returns it; it is found here where it is needed and None.
    """
    from autotailor.data.pictures.reading import is_transparent

    files = own.layout.files()
    step = -(-len(files) // LOOKED_AT)
    with ThreadPoolExecutor(cores()) as pool:
        positions = np.flatnonzero(list(pool.map(is_transparent, files[::step]))) * step
    if not len(positions):
        return []
    return [
        f"# {len(positions):,} of {len(files[::step]):,} pictures that were looked at have transparent pixels, "
        "which stand over white:",
        "# data.background: black, or drop where the network was trained with their stored colours,",
        "# as torchvision's ImageFolder reads them.",
        *(
            []
            if options.random_weights or not own.labels or own.columns
            else _judged(own, net, options, positions, prepared)
        ),
    ]


def _judged(
    own: OwnData,
    net: SuperNet,
    options: argparse.Namespace,
    positions: np.typing.NDArray[np.int64],
    prepared: tuple[Preprocessing, PictureStatistics] | None,
) -> list[str]:
    """Comments that warn where the network's accuracy on these pictures differs much between the backgrounds."""
    from autotailor.accuracy.backgrounds import JUDGED, find_transparent, judge
    from autotailor.data.datasets.folder import Files
    from autotailor.data.excerpt import spread
    from autotailor.data.pictures.config import PictureConfig
    from autotailor.data.pictures.stream import Pictures, PictureSet

    side, is_bytes = net.input_shape[-1], net.graph.given.is_bytes
    how, measured = prepared or preprocessing(own, options.source, side, options.mean, options.std, is_bytes=is_bytes)
    config = PictureConfig(
        own.name,
        side,
        mean=how.mean,
        std=how.std,
        crop=crop_of(how, measured, side),
        interpolation=how.interpolation or "bilinear",
        workers=cores(),
    )
    labels = np.concatenate([np.asarray(listing.labels, np.int64) for listing in own.layout.parts.values()])
    pictures = Pictures(Files(own.layout.files()), labels, np.arange(len(labels)))
    looked_at = positions[spread(len(positions), JUDGED)]
    found = find_transparent(PictureSet(config, pictures.part(looked_at)), "white")
    if found is None:
        return []
    return [f"# {line}" for line in textwrap.wrap(judge(net.build(net.largest(), logits=True), found).sentence, 100)]
