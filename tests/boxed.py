"""A person's detection: digits pasted on canvases, a COCO file with their boxes, and a small network trained on them.

The network is exported to an ONNX file, which is what that person has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torchvision.ops import Conv2dNormActivation, sigmoid_focal_loss

from masked import paper, pasted

SIDE, STRIDE = 64, 4
DIGITS = {3: (0, "zero"), 7: (1, "one"), 20: (7, "seven")}
"""By the id of a category, which are not contiguous, a digit and the name of its class."""
SECTION = {
    "name": "notes",
    "kind": "coco",
    "task": "detection",
    "decode": "autotailor.task.decoders.centres:centres",
    "resolution": SIDE,
    "mean": [0.5] * 3,
    "std": [0.25] * 3,
}


def write_notes(folder: Path, count: int = 260, seed: int = 0) -> Path:
    """Writes ``images`` and ``boxes.json``: sides of 64 to 90 pixels, up to four digits on each picture."""
    random = np.random.default_rng(seed)
    rows, labels = load_digits(return_X_y=True)
    (folder / "images").mkdir(parents=True)
    images, annotations = list[dict[str, Any]](), list[dict[str, Any]]()
    for number in range(count):
        pixels = paper(random)
        height, width = pixels.shape[:2]
        for _ in range(random.integers(0, 5)):
            category = int(random.choice(list(DIGITS)))
            (top, left), alpha = pasted(random, pixels, rows[labels == DIGITS[category][0]], 18, 36)
            down, right = np.nonzero(alpha > 0.3)
            box = [left.start + right.min(), top.start + down.min(), np.ptp(right) + 1, np.ptp(down) + 1]
            annotations.append(
                {"id": len(annotations) + 1, "image_id": 1000 + number, "category_id": category, "iscrowd": 0}
                | {"bbox": [float(edge) for edge in box], "area": float(box[2] * box[3])}
            )
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / "images" / f"{number:03d}.jpg", quality=92)
        images.append({"id": 1000 + number, "file_name": f"{number:03d}.jpg", "height": height, "width": width})
    categories = [{"id": id_, "name": name} for id_, (_, name) in DIGITS.items()]
    (folder / "boxes.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories}), encoding="utf-8"
    )
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
    """Two resolutions, joined upwards; heat, sizes and offsets have a quarter of the picture's sides."""

    def __init__(self) -> None:
        super().__init__()
        self.high = nn.Sequential(Conv2dNormActivation(3, 16, 3, 2), Block(16, 16))
        self.middle = nn.Sequential(Block(16, 32, 2), Block(32, 32), Block(32, 32))
        self.low = nn.Sequential(Block(32, 64, 2), Block(64, 64), Block(64, 64), nn.Upsample(scale_factor=2))
        self.joined = Conv2dNormActivation(96, 48, 3)
        self.heads = nn.ModuleDict({"heat": _head(len(DIGITS)), "size": _head(2), "offset": _head(2)})
        nn.init.constant_(self.heads["heat"][-1].bias, -4.0)  # type: ignore[index]

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        middle = self.middle(self.high(x))
        x = self.joined(torch.cat([self.low(middle), middle], 1))
        return {name: head(x) for name, head in self.heads.items()}


def _head(channels: int) -> nn.Sequential:
    return nn.Sequential(Conv2dNormActivation(48, 32, 3), nn.Conv2d(32, channels, 1))


def network() -> nn.Module:
    """The network without trained weights."""
    return Network()


def loss(found: dict[str, torch.Tensor], boxes: torch.Tensor) -> torch.Tensor:
    """Focal loss of the heat, and the distance of sizes and offsets at the cell of each box's middle.

    Args:
        found: of the network.
        boxes: ``[b, boxes, 6]``, as the data give them.
    """
    heat, cells = found["heat"], found["heat"].shape[3]
    picture, row = torch.nonzero(boxes[..., 4] >= 0, as_tuple=True)
    edges, label = boxes[picture, row, :4] * cells, boxes[picture, row, 4].long()
    middle, count = (edges[:, :2] + edges[:, 2:]) / 2, max(len(row), 1)
    x, y = middle.long().clamp(max=cells - 1).unbind(1)
    wanted = torch.zeros_like(heat)
    wanted[picture, label, y, x] = 1
    away = (found["size"][picture, :, y, x] - (edges[:, 2:] - edges[:, :2])).abs().sum()
    away = away + 3 * (found["offset"][picture, :, y, x] - (middle - torch.stack([x, y], 1))).abs().sum()
    return (sigmoid_focal_loss(heat, wanted, alpha=0.75, reduction="sum") + 0.3 * away) / count


def train(folder: Path, epochs: int = 24) -> nn.Module:
    """The network as its owner has trained it, in about a minute on one thread."""
    from autotailor import data

    stream = data.load({**SECTION, "root": str(folder), "crop": 0, "scale": [0.6, 1.0], "flip": False}).train
    torch.manual_seed(0)
    made = network()
    optimizer = torch.optim.AdamW(made.parameters(), lr=4e-3)
    steps = epochs * stream.num_batches(16)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for epoch in range(epochs):
        for images, targets in stream.batches(epoch, 16):
            optimizer.zero_grad()
            loss(made(images), targets).backward()
            optimizer.step()
            schedule.step()
    return made.eval()


def export(made: nn.Module, path: Path) -> Path:
    """The ONNX file of a network, with its raw heads."""
    names = list(made.heads)  # type: ignore[arg-type]
    torch.onnx.export(made, (torch.zeros(1, 3, SIDE, SIDE),), str(path), output_names=names, dynamo=False)
    return path
