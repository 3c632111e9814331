"""Clip art on textures, with COCO files of the boxes, and a network of heat maps, sizes and offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision.ops import Conv2dNormActivation

import boxed
from pipelines import pasted

SIDE = 64
GIVEN = "scenes"
SIGNAL: tuple[int, ...] = ()
EPOCHS = 12
HEADS = ("heat", "size", "offset")
INSPECT = ("--resolution", str(SIDE), *pasted.NORMALISED)
OVERRIDES: tuple[str, ...] = ()


def write(folder: Path, seed: int = 0, most: int = 0) -> Path:
    """Writes ``PART.json``, COCO files of the boxes, and the pictures of all parts in ``images``."""
    root, art = folder / GIVEN, pasted.art(folder)
    (root / "images").mkdir(parents=True)
    for part, count in pasted.PARTS.items():
        images, annotations = list[dict[str, Any]](), list[dict[str, Any]]()
        for number, (picture, objects) in enumerate(pasted.scenes(art, part, SIDE, min(count, most or count), seed)):
            name = f"{part}_{number:04d}.jpg"
            picture.save(root / "images" / name, quality=92)
            images.append({"id": number + 1, "file_name": name, "width": picture.width, "height": picture.height})
            for label, (rows, columns), opacity in objects:
                down, right = np.nonzero(opacity > pasted.OPAQUE)
                corner = [columns.start + right.min(), rows.start + down.min()]
                box = [float(edge) for edge in (*corner, np.ptp(right) + 1, np.ptp(down) + 1)]
                said = {"id": len(annotations) + 1, "image_id": number + 1, "category_id": label + 1, "iscrowd": 0}
                annotations.append(said | {"bbox": box, "area": box[2] * box[3]})
        categories = [{"id": id_, "name": name} for id_, name in enumerate(pasted.CLASSES, 1)]
        content = {"images": images, "annotations": annotations, "categories": categories}
        (root / f"{part}.json").write_text(json.dumps(content), encoding="utf-8")
    return root


class Network(boxed.Network):
    """The same with narrower heads."""

    def __init__(self, width: int = 32, inner: int = 16) -> None:
        super().__init__()
        self.joined = Conv2dNormActivation(96, width, 3)
        channels = dict(zip(HEADS, (len(pasted.CLASSES), 2, 2), strict=True))
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(Conv2dNormActivation(width, inner, 3), nn.Conv2d(inner, count, 1))
                for name, count in channels.items()
            }
        )
        nn.init.constant_(self.heads["heat"][-1].bias, -4.0)


def network() -> nn.Module:
    """Pictures ``[n, 3, SIDE, SIDE]`` to the three heads at a quarter of the sides."""
    return Network()


def loss(outputs: Any, boxes: torch.Tensor) -> torch.Tensor:
    """Loss of the heads, whether by their names or in their order."""
    return boxed.loss(outputs if isinstance(outputs, dict) else dict(zip(HEADS, outputs, strict=True)), boxes)


def train(made: nn.Module, folder: Path, seed: int) -> int:
    """The owner's training; returns how many pictures the network has seen."""
    section: dict[str, Any] = {"name": "scenes", "kind": "coco", "task": "detection", "root": str(folder / GIVEN)}
    files = {"decode": boxed.SECTION["decode"], **{part: f"{part}.json" for part in pasted.PARTS}}
    return pasted.fit(made, {**section, **files, "resolution": SIDE, "crop": 0}, loss, EPOCHS, seed)
