"""A stranger's own data and model: JPEGs in class folders, and a small network trained on them, exported by torch.

No embedded network or data set is used. The pictures are scikit-learn's handwritten zeros to fours in colour, each with
a size of its own, written by Pillow as JPEG files.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torchvision import transforms

SIDE = 40
CLASSES = ("zebra", "yacht", "xylophone", "wagon", "violin")
"""Names of the digits 0 to 4, in an order that is not alphabetical."""


def write_photos(folder: Path, per_class: int = 60, seed: int = 0) -> None:
    """Writes ``folder/CLASS/NUMBER.jpg``: sides of 44 to 80 pixels, each with a paper and an ink of its own."""
    random = np.random.default_rng(seed)
    digits, labels = load_digits(return_X_y=True)
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for number, row in enumerate(digits[labels == label][:per_class]):
            mask = Image.fromarray((row.reshape(8, 8) / 16 * 255).astype(np.uint8))
            width = int(random.integers(44, 81))
            height = int(width * random.uniform(1.0, 1.15))
            alpha = (
                np.asarray(mask.resize((width, height), Image.Resampling.BICUBIC), dtype=np.float64)[..., None] / 255
            )
            paper, ink = random.uniform(140, 255, 3), random.uniform(0, 110, 3)
            pixels = paper * (1 - alpha) + ink * alpha + random.normal(0, 12, (height, width, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name / f"{number:03d}.jpg", quality=90)


class Block(nn.Module):
    """A residual bottleneck with SiLU, unlike those of the embedded networks."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        inner = outputs // 2
        self.main = nn.Sequential(
            nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.SiLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.SiLU(),
            nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.main(x) + self.shortcut(x))


def network() -> nn.Module:
    """An untrained classifier of five classes for pictures of 40 pixels."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
        Block(16, 32), Block(32, 32), Block(32, 64, 2), Block(64, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(CLASSES)),
    )  # fmt: skip


def read_photos(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """All pictures ``[n, 3, 40, 40]``, and their labels, which number the class folders alphabetically.

    The pictures are normalised by their own mean and deviation, as many people do.
    """
    paths = sorted(folder.glob("*/*.jpg"))
    names = sorted({path.parent.name for path in paths})
    cut = [transforms.ToTensor(), transforms.Resize(SIDE, antialias=True), transforms.CenterCrop(SIDE)]
    prepare = transforms.Compose(cut)
    images = torch.stack([prepare(Image.open(path)) for path in paths])
    mean, std = images.mean((0, 2, 3)), images.std((0, 2, 3))
    return transforms.Normalize(mean, std)(images), torch.tensor([names.index(path.parent.name) for path in paths])


def train(model: nn.Module, folder: Path, epochs: int = 10) -> nn.Module:
    """Trains the network, as its owner would have done; takes seconds on one thread."""
    torch.manual_seed(0)
    images, labels = read_photos(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    model.train()
    for _ in range(epochs):
        for part in torch.randperm(len(images)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[part]), labels[part]).backward()
            optimizer.step()
    return model.eval()


def export(model: nn.Module, path: Path, shape: Sequence[int] = (1, 3, SIDE, SIDE)) -> None:
    """Writes ``path`` by torch's dynamo exporter: weights beside it in ``path.data``, BatchNorm folded away."""
    path.parent.mkdir(parents=True, exist_ok=True)
    program = torch.onnx.export(model, (torch.zeros(*shape),), dynamo=True, external_data=True, verbose=False)
    assert program is not None
    program.save(str(path), external_data=True)
