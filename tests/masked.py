"""A person's segmentation: digits pasted on canvases, each picture with a mask, and a small network trained on them.

``network`` is the factory of that person's project: this file is copied there as a module of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torchvision.ops import Conv2dNormActivation

Pixels = npt.NDArray[np.float64]
SIDE = 64
DIGITS = (0, 1, 7)
CLASSES = ("paper", "zero", "one", "seven")
IGNORED = 255
SECTION = {
    "name": "notes",
    "kind": "masks",
    "task": "segmentation",
    "resolution": SIDE,
    "mean": [0.5] * 3,
    "std": [0.25] * 3,
}


def paper(random: np.random.Generator) -> Pixels:
    """A blank picture ``[height, width, 3]``, whose sides are 64 to 90 pixels."""
    height, width = (int(side) for side in random.integers(64, 91, 2))
    y, x = np.mgrid[:height, :width]
    wave = np.sin(x / random.uniform(4, 12) + y / random.uniform(4, 12))[..., None]
    found: Pixels = random.uniform(130, 255, 3) + 15 * wave + random.normal(0, 12, (height, width, 3))
    return found


def pasted(
    random: np.random.Generator, pixels: Pixels, rows: Pixels, least: int, most: int
) -> tuple[tuple[slice, slice], Pixels]:
    """Draws one of some digits on a picture, smaller than ``most`` pixels; returns where, and how much ink is there."""
    side = int(random.integers(least, most))
    row = rows[random.choice(len(rows))].reshape(8, 8) / 16 * 255
    drawn = Image.fromarray(row.astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC)
    alpha = np.asarray(drawn, dtype=np.float64) / 255
    top, left = (int(random.integers(length - side)) for length in pixels.shape[:2])
    place = slice(top, top + side), slice(left, left + side)
    pixels[place] = pixels[place] * (1 - alpha[..., None]) + random.uniform(0, 110, 3) * alpha[..., None]
    return place, alpha


def write_notes(folder: Path, count: int = 260, seed: int = 0) -> Path:
    """Writes ``images``, ``masks`` and ``classes.txt``: sides of 64 to 90 pixels, one to three digits on each picture.

    A digit's blurred edge has no class.
    """
    random = np.random.default_rng(seed)
    rows, labels = load_digits(return_X_y=True)
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    for number in range(count):
        pixels = paper(random)
        mask = np.zeros(pixels.shape[:2], np.uint8)
        for _ in range(random.integers(1, 4)):
            label = int(random.integers(len(DIGITS)))
            place, alpha = pasted(random, pixels, rows[labels == DIGITS[label]], 28, 45)
            mask[place] = np.where(alpha > 0.5, label + 1, np.where(alpha > 0.35, IGNORED, mask[place]))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / "images" / f"{number:03d}.jpg", quality=92)
        Image.fromarray(mask).save(folder / "masks" / f"{number:03d}.png")
    (folder / "classes.txt").write_text("\n".join(CLASSES) + "\n", encoding="utf-8")
    return folder


class Block(nn.Module):
    """A residual bottleneck."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        inner = after // 2
        self.main = nn.Sequential(
            Conv2dNormActivation(before, inner, 1),
            Conv2dNormActivation(inner, inner, 3, stride),
            Conv2dNormActivation(inner, after, 1, activation_layer=None),
        )
        same = stride == 1 and before == after
        self.shortcut = nn.Identity() if same else Conv2dNormActivation(before, after, 1, stride, activation_layer=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu(self.main(x) + self.shortcut(x))


class Network(nn.Module):
    """Three resolutions, joined upwards as in a U-Net; the map has half the sides of the picture."""

    def __init__(self, classes: int = len(CLASSES)) -> None:
        super().__init__()
        self.high = nn.Sequential(Conv2dNormActivation(3, 16, 3, 2), Block(16, 16))
        self.middle = nn.Sequential(Block(16, 32, 2), Block(32, 32), Block(32, 32))
        self.low = nn.Sequential(Block(32, 64, 2), Block(64, 64), Block(64, 64))
        self.up = nn.Upsample(scale_factor=2)
        self.joined = nn.ModuleList([Conv2dNormActivation(96, 32, 3), Conv2dNormActivation(48, 16, 3)])
        self.last = nn.Conv2d(16, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high = self.high(x)
        middle = self.middle(high)
        low = self.low(middle)
        x = self.joined[0](torch.cat([self.up(low), middle], 1))
        x = self.joined[1](torch.cat([self.up(x), high], 1))
        found: torch.Tensor = self.last(x)
        return found


def network() -> nn.Module:
    """The network without trained weights."""
    return Network()


def train(folder: Path, epochs: int = 12) -> nn.Module:
    """The network as its owner has trained it, in some seconds on one thread."""
    from autotailor import data

    stream = data.load({**SECTION, "root": str(folder), "scale": [0.5, 1.0], "flip": False, "crop": 1.0}).train
    torch.manual_seed(0)
    made = network()
    optimizer = torch.optim.AdamW(made.parameters(), lr=6e-3)
    steps = epochs * stream.num_batches(16)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for epoch in range(epochs):
        for images, targets in stream.batches(epoch, 16):
            optimizer.zero_grad()
            maps = nn.functional.interpolate(made(images), targets.shape[1:], mode="bilinear")
            nn.functional.cross_entropy(maps, targets, ignore_index=IGNORED).backward()
            optimizer.step()
            schedule.step()
    return made.eval()
