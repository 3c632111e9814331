"""Clip art on textures, with a mask for each picture, and a network whose three resolutions are joined upwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

from autotailor.data.labels import IGNORED
from masked import Network
from pipelines import pasted

SIDE = 64
GIVEN = "scenes"
SIGNAL: tuple[int, ...] = ()
EPOCHS = 10
INSPECT = ("--resolution", str(SIDE), *pasted.NORMALISED)
OVERRIDES: tuple[str, ...] = ()


def write(folder: Path, seed: int = 0, most: int = 0) -> Path:
    """Writes ``classes.txt``, and ``images`` and ``masks`` of each part; half transparent edges have no class."""
    root, art = folder / GIVEN, pasted.art(folder)
    for part, count in pasted.PARTS.items():
        for name in ("images", "masks"):
            (root / part / name).mkdir(parents=True)
        found = pasted.scenes(art, part, SIDE, min(count, most or count), seed)
        for number, (picture, objects) in enumerate(found):
            mask = np.zeros(picture.size[::-1], np.uint8)
            for label, place, opacity in objects:
                edge = np.where(opacity > pasted.THERE, IGNORED, mask[place])
                mask[place] = np.where(opacity > pasted.OPAQUE, label + 1, edge)
            picture.save(root / part / "images" / f"{number:04d}.jpg", quality=92)
            Image.fromarray(mask).save(root / part / "masks" / f"{number:04d}.png")
    (root / "classes.txt").write_text("\n".join(("texture", *pasted.CLASSES)) + "\n", encoding="utf-8")
    return root


def network() -> nn.Module:
    """Pictures ``[n, 3, SIDE, SIDE]`` to logits of the classes at half of the sides."""
    return Network(1 + len(pasted.CLASSES))


def loss(maps: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the pixels that count."""
    scaled = functional.interpolate(maps, targets.shape[1:], mode="bilinear")
    return functional.cross_entropy(scaled, targets.long(), ignore_index=IGNORED)


def train(made: nn.Module, folder: Path, seed: int) -> int:
    """The owner's training; returns how many pictures the network has seen."""
    section: dict[str, Any] = {"name": "scenes", "kind": "masks", "task": "segmentation", "root": str(folder / GIVEN)}
    return pasted.fit(made, {**section, "resolution": SIDE, "crop": 1.0}, loss, EPOCHS, seed)
