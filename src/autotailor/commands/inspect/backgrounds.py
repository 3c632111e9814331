"""What ``inspect --data`` says of pictures with transparency: how many, and over what the network knows them best."""

from __future__ import annotations

import argparse
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from autotailor.commands.inspect.own_data import OwnData, Preprocessing, crop_of, preprocessing
from autotailor.data.files.contents import cores

if TYPE_CHECKING:
    from autotailor.data.pictures.statistics import PictureStatistics
    from autotailor.ir.supernet import SuperNet

LOOKED_AT = 2000  # pictures, for transparency


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
            if options.random_weights or not own.labels or own.columns or own.task
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
    images = find_transparent(PictureSet(config, pictures.part(looked_at)), "white")
    if images is None:
        return []
    return [f"# {line}" for line in textwrap.wrap(judge(net.build(net.largest(), logits=True), images).sentence, 100)]
