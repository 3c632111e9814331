"""A small ResNet with weights of another task: trained on letters of Debian's fonts, tuned on 500 pictures of digits.

Each picture is one character in a font, bent, turned, of one colour over another, with noise. Training, validation and
test pictures of the digits come from fonts of their own. Fetches 24 MB of fonts with apt-get, and trains for some ten
CPU minutes, where the folder does not hold the result yet. Nothing is installed.
"""

from __future__ import annotations

import random
import string
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import nn
from torch.nn import functional

from autotailor import data

FONTS = (
    "freefont-ttf", "liberation", "dejavu-core", "lato", "open-sans", "linuxlibertine", "junicode", "comfortaa",
    "cantarell", "ebgaramond", "cabin", "lobster", "lobstertwo", "quicksand", "play", "inconsolata", "hack",
    "roboto-unhinted", "humor-sans", "crosextra-carlito", "crosextra-caladea", "tomsontalks", "rufscript",
    "dkg-handwriting", "breip", "jura", "league-spartan",
)  # fmt: skip
SIZE, BATCH = 48, 64
LETTERS, EPOCHS = 24_000, 5
DIGITS, TUNED = {"train": 500, "val": 200, "test": 500}, 12
PARTS = {"letters": 0, "train": 0, "val": 1, "test": 2}  # fonts, by their number modulo 4; letters have half of them
WIDTHS, BLOCKS = (32, 64, 128), 2


def section(folder: Path) -> dict[str, Any]:
    """The section ``data`` of a configuration for the folder's pictures."""
    half = [0.5, 0.5, 0.5]
    return {
        "kind": "folder", "name": "letters", "root": str(folder / "photos"), "seed": 0, "resolution": SIZE,
        "mean": half, "std": half, "crop": 1.0, "scale": [0.7, 1.0], "flip": False,
    }  # fmt: skip


def prepare(folder: Path) -> Path:
    """The ONNX file of the tuned network; what is missing is fetched, drawn and trained."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "fonts").exists():
        archives = folder / "debs"
        archives.mkdir(exist_ok=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        names = [f"fonts-{name}" for name in FONTS]
        subprocess.run(["apt-get", "download", "-qq", *names], cwd=archives, check=True)
        for archive in archives.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(archive), str(folder / "fonts")], check=True)
    if not (folder / "photos").exists():
        for part, count in DIGITS.items():
            _save(folder, part, count)
    if not (folder / "letters.onnx").exists():
        _train(folder)
    return folder / "letters.onnx"


def _fonts(folder: Path, part: str) -> list[Path]:
    """The fonts of a part."""
    found = sorted(p for kind in ("*.ttf", "*.otf") for p in (folder / "fonts").rglob(kind) if not p.is_symlink())
    number = PARTS[part]
    return [p for i, p in enumerate(found) if i % 4 == number or (part == "letters" and i % 4 == number + 3)]


def drawn(text: str, font: Path, draw: random.Random) -> Image.Image:
    """One character, as a font and chance have it."""
    colours = [tuple(draw.randrange(256) for _ in range(3)) for _ in range(2)]
    picture = Image.new("RGB", (2 * SIZE, 2 * SIZE), colours[0])
    typeface = ImageFont.truetype(str(font), draw.randint(SIZE, int(1.6 * SIZE)))
    ImageDraw.Draw(picture).text((SIZE, SIZE), text, colours[1], typeface, anchor="mm")
    picture = picture.rotate(draw.uniform(-25, 25), Image.Resampling.BILINEAR, fillcolor=colours[0])
    bend = [draw.uniform(-8, 8) for _ in range(8)]
    corners = (0, 0, 0, 2 * SIZE, 2 * SIZE, 2 * SIZE, 2 * SIZE, 0)
    moved = [a + b for a, b in zip(corners, bend, strict=True)]
    picture = picture.transform((SIZE, SIZE), Image.Transform.QUAD, moved, Image.Resampling.BILINEAR)
    noise = np.random.default_rng(draw.randrange(2**32)).normal(0.0, draw.uniform(5, 40), (SIZE, SIZE, 3))
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))


def _draws(folder: Path, part: str, classes: Sequence[str], count: int) -> Iterator[tuple[int, Image.Image]]:
    """Classes in turn, with pictures of them; the same each time."""
    fonts, draw = _fonts(folder, part), random.Random(part)
    for number in range(count):
        kind = number % len(classes)
        yield kind, drawn(classes[kind], draw.choice(fonts), draw)


def _save(folder: Path, part: str, count: int) -> None:
    for number, (kind, picture) in enumerate(_draws(folder, part, string.digits, count)):
        path = folder / "photos" / part / string.digits[kind] / f"{number:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)


class Block(nn.Module):
    """Two convolutions beside the identity, or beside a convolution that halves the map."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.second, self.last = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.beside = nn.Identity()
        if stride != 1 or before != width:
            self.beside = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.last(self.second(self.norm(self.first(x)).relu()))
        return (inner + self.beside(x)).relu()


def network(classes: int) -> nn.Sequential:
    """A ResNet of three stages for pictures of 48 pixels."""
    layers: list[nn.Module] = [nn.Conv2d(3, WIDTHS[0], 3, 2, 1, bias=False), nn.BatchNorm2d(WIDTHS[0]), nn.ReLU()]
    before = WIDTHS[0]
    for stage, width in enumerate(WIDTHS):
        for block in range(BLOCKS):
            layers.append(Block(before, width, 2 if stage and not block else 1))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


def _fit(net: nn.Module, batches: Iterable[tuple[torch.Tensor, torch.Tensor]], steps: int, rate: float) -> None:
    """Trains with AdamW, a rate that rises and falls, and softened labels."""
    optimizer = torch.optim.AdamW(net.parameters(), rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    net.train()
    for images, labels in batches:
        loss = functional.cross_entropy(net(images), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def _train(folder: Path) -> None:
    """Letters first, then the digits with a new classifier."""
    torch.manual_seed(0)
    letters = list(_draws(folder, "letters", string.ascii_letters, LETTERS))
    labels = torch.tensor([kind for kind, _ in letters])
    pixels = torch.from_numpy(np.stack([np.asarray(picture) for _, picture in letters]).transpose(0, 3, 1, 2))
    net = network(len(string.ascii_letters))
    orders = [part for _ in range(EPOCHS) for part in torch.randperm(len(labels)).split(BATCH)]
    _fit(net, ((pixels[part].float() / 127.5 - 1.0, labels[part]) for part in orders), len(orders), 4e-3)
    net[-1] = nn.Linear(WIDTHS[-1], len(string.digits))
    train = data.load(section(folder)).train
    seen = (batch for epoch in range(TUNED) for batch in train.batches(epoch, BATCH))
    _fit(net, seen, TUNED * train.num_batches(BATCH), 1e-3)
    example = (torch.randn(1, 3, SIZE, SIZE),)
    names = {"input_names": ["image"], "output_names": ["scores"]}
    torch.onnx.export(net.eval(), example, str(folder / "letters.onnx"), dynamo=True, **names)
