"""``pictures.json``: a few test pictures with what each network says of them, which the report shows side by side."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotailor.data import resize
from autotailor.data.files.shown import as_pictures, in_base64
from autotailor.data.splits import DataSplits
from autotailor.export.verification import as_tensors, run_onnx
from autotailor.measurement.summary import ORIGINAL, input_shape
from autotailor.task.registry import of

SCHEMA, LABELS = 1, "labels"
SHOWN, SIDE = 4, 192
"""Pictures that are shown, and the least side at which they are painted, pixels."""
COLOURS = 3
GOLDEN = (5**0.5 - 1) / 2


def pictures(models: Mapping[str, Path], data: DataSplits) -> dict[str, Any]:
    """Test pictures, spread evenly over the set, painted by the task.

    Args:
        models: ONNX files by name, the original network among them.
        data: with a target for each test picture.

    Returns:
        ``classes``, a colour by name; and ``pictures``, for each one a JPEG as a data URL by what it shows: ``labels``,
        where there are some, and the names of the networks. Both are empty where the task paints nothing.
    """
    task, colours = of(data.test), _colours(data.classes or tuple(map(str, range(data.num_classes))))
    part = data.test.part(np.unique(np.linspace(0, len(data.test) - 1, SHOWN).astype(np.int64)))
    images, targets = next(iter(part.batches(SHOWN)))
    plain = _plain(images, data) if images.shape[1] == COLOURS else []
    if not plain or task.painted(plain[0], targets[0], colours) is None:
        return {"schema_version": SCHEMA, "classes": {}, "pictures": []}
    said = {LABELS: targets} if data.labelled else {}
    for name in sorted(models, key=lambda name: name != ORIGINAL):
        shape = input_shape(models[name])
        outputs = run_onnx(models[name])(np.ascontiguousarray(resize(images, *shape[2:]).numpy()))
        said[name] = task.answers(task.read(as_tensors(outputs), shape[-1]))
    shown = [
        {name: _url(task.painted(picture, rows[number], colours)) for name, rows in said.items()}
        for number, picture in enumerate(plain)
    ]
    hexes = {name: "#" + "".join(f"{each:02x}" for each in colour) for name, colour in colours.items()}
    return {"schema_version": SCHEMA, "classes": hexes, "pictures": shown}


def _colours(classes: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Colours of classes that neighbours in the list do not share."""
    shades = (colorsys.hsv_to_rgb(number * GOLDEN % 1, 0.85, 0.9) for number in range(len(classes)))
    return {name: tuple(round(255 * each) for each in shade) for name, shade in zip(classes, shades, strict=True)}


def _plain(images: torch.Tensor, data: DataSplits) -> list[Any]:
    """Images as pictures that are large enough to be painted."""
    from PIL import Image

    side = max(SIDE, images.shape[-1])
    return [each.resize((side, side), Image.Resampling.BICUBIC) for each in as_pictures(images, data)]


def _url(picture: Any) -> str:
    """A picture as a data URL."""
    return "data:image/jpeg;base64," + in_base64(picture, "JPEG", quality=85)
