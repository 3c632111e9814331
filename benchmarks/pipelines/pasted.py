"""What the cases of segmentation and detection have in common: clip art pasted on textures, and an owner's training.

The clip art is Debian's, by its folders (``given/clipart.py``). A picture of clip art is in one part of the data alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from given import clipart
from PIL import Image
from torch import nn

from autotailor import data

Pixels = npt.NDArray[np.float64]
CLASSES = ("building", "flag", "fruit", "mammal", "person", "playing_card")
PARTS = {"train": 2400, "val": 300, "test": 500}
LARGE = 96  # longest side of a piece of clip art before it is pasted, pixels
OPAQUE, THERE = 0.5, 0.2  # shares of opacity: of a pixel that is an object's, and below which it is the texture's
LEAST = 0.1  # share of the pixels of clip art that are opaque
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
NORMALISED = ("--mean", *map(str, MEAN), "--std", *map(str, STD))
BATCH = 32


class Piece(NamedTuple):
    """One object on a picture.

    Attributes:
        label: number of its class.
        place: rows and columns.
        opacity: 0 to 1, of the pixels there.
    """

    label: int
    place: tuple[slice, slice]
    opacity: Pixels


@lru_cache
def pieces(folder: Path, part: str) -> tuple[tuple[Image.Image, ...], ...]:
    """Clip art of each class with its transparency, cut to what is visible; what is hardly opaque is left out."""
    found = []
    for name in CLASSES:
        small = folder / "small" / part / name
        if not small.exists():
            _shrink(folder / "photos" / part / name, small)
        opened = (Image.open(path).convert("RGBA") for path in sorted(small.glob("*.png")))
        found.append(tuple(each for each in opened if np.mean(np.asarray(each)[..., 3] > 255 * OPAQUE) > LEAST))
    return tuple(found)


def _shrink(source: Path, target: Path) -> None:
    """Writes small copies of pictures, cut to what is visible; opening the large ones takes minutes."""
    copies = {}
    for path in source.glob("*.png"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(path).convert("RGBA")
        picture.thumbnail((4 * LARGE, 4 * LARGE))
        if (box := picture.getchannel("A").getbbox()) is not None:
            copies[path.name] = picture.crop(box)
            copies[path.name].thumbnail((LARGE, LARGE))
    target.mkdir(parents=True)
    for name, picture in copies.items():
        picture.save(target / name)


def texture(height: int, width: int, random: np.random.Generator) -> Pixels:
    """A picture ``[height, width, 3]`` from 0 to 255: colours that run into each other, waves and grain."""
    coarse = random.uniform(0, 255, (*random.integers(2, 7, 2), 3)).astype(np.uint8)
    ground = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), dtype=np.float64)
    y, x = np.mgrid[:height, :width]
    wave = np.sin(x * random.uniform(-1, 1) + y * random.uniform(-1, 1))[..., None]
    found: Pixels = ground + random.uniform(0, 40) * wave + random.normal(0, random.uniform(3, 15), ground.shape)
    return found


def scenes(folder: Path, part: str, side: int, count: int, seed: int) -> Iterator[tuple[Image.Image, list[Piece]]]:
    """Pictures with one to three objects, the later ones over the earlier; sides are up to a quarter above ``side``."""
    random, art = np.random.default_rng([seed, list(PARTS).index(part)]), pieces(folder, part)
    for _ in range(count):
        height, width = (int(length) for length in random.integers(side, side * 5 // 4, 2))
        pixels, objects = texture(height, width, random), []
        for _ in range(random.integers(1, 4)):
            label = int(random.integers(len(CLASSES)))
            picture = art[label][random.integers(len(art[label]))].copy()
            length = int(side * random.uniform(0.3, 0.65))
            picture.thumbnail((length, length))
            drawn = np.asarray(picture, dtype=np.float64)
            top, left = random.integers(height - drawn.shape[0]), random.integers(width - drawn.shape[1])
            place = slice(top, top + drawn.shape[0]), slice(left, left + drawn.shape[1])
            opacity = drawn[..., 3] / 255
            if not (opacity > OPAQUE).any():
                continue  # thin lines vanish where they are drawn so small
            pixels[place] += (drawn[..., :3] - pixels[place]) * opacity[..., None]
            objects.append(Piece(label, place, opacity))
        yield Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), objects


def art(folder: Path) -> Path:
    """The folder of clip art, which lies beside the cases' folders and is fetched where it is missing."""
    return clipart.photos(folder.parents[2] / "clipart")


def fit(
    made: nn.Module, section: dict[str, Any], loss: Callable[[Any, torch.Tensor], torch.Tensor], epochs: int, seed: int
) -> int:
    """Trains a network as its owner does, on crops and mirrored pictures; returns how many it has seen.

    Args:
        made: the network, which is trained in place.
        section: of the data.
        loss: of outputs and targets.
        epochs: of the training.
        seed: of their order.
    """
    stream = data.load({**section, "mean": MEAN, "std": STD, "scale": [0.5, 1.0], "seed": seed}).train
    torch.manual_seed(seed)
    steps = epochs * stream.num_batches(BATCH)
    optimizer = torch.optim.AdamW(made.parameters(), 5e-3, weight_decay=0.02)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps)
    made.train()
    for epoch in range(epochs):
        for images, targets in stream.batches(epoch, BATCH):
            optimizer.zero_grad()
            loss(made(images), targets).backward()
            optimizer.step()
            rates.step()
    made.eval()
    return steps * BATCH
