"""What the cases of sound and motion have in common: arrays in parts, residual blocks, and an owner's training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

BATCH = 64
PARTS = {"train": 0.65, "val": 0.15, "test": 0.2}
"""Shares of the groups."""


def save(path: Path, x: Sequence[np.ndarray], y: Sequence[str], groups: Sequence[str], seed: int) -> Path:
    """Writes signals ``[n, ...]`` with their names and groups, divided by groups, as arrays of each part."""
    names, random = sorted(set(groups)), np.random.default_rng(seed)
    random.shuffle(names)
    ends = np.round(np.cumsum(list(PARTS.values())) * len(names)).astype(int)
    arrays, first = {}, 0
    for part, last in zip(PARTS, ends, strict=True):
        rows = np.flatnonzero(np.isin(groups, names[first:last]))
        arrays |= {f"x_{part}": np.stack([x[row] for row in rows]).astype(np.float32)}
        arrays |= {f"y_{part}": np.array(y)[rows], f"groups_{part}": np.array(groups)[rows]}
        first = last
    np.savez(path, **arrays)
    return path


def read(path: Path, part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Signals of a part, and the numbers of their classes in the order of the names."""
    with np.load(path) as archive:
        names = np.unique(archive["y_train"])
        return torch.from_numpy(archive[f"x_{part}"]), torch.from_numpy(np.searchsorted(names, archive[f"y_{part}"]))


def normalisation(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard deviation of each channel of the training signals."""
    signals, _ = read(path, "train")
    axes = [0, *range(2, signals.ndim)]
    return signals.mean(axes), signals.std(axes)


class Block(nn.Module):
    """A residual pair of convolutions, along time or of maps."""

    def __init__(self, kind: type[nn.Conv1d | nn.Conv2d], before: int, after: int, kernel: int, stride: int) -> None:
        super().__init__()
        norm = nn.BatchNorm1d if kind is nn.Conv1d else nn.BatchNorm2d
        self.main = nn.Sequential(
            *(kind(before, after, kernel, stride, kernel // 2, bias=False), norm(after), nn.ReLU()),
            *(kind(after, after, kernel, 1, kernel // 2, bias=False), norm(after)),
        )
        same = (before, stride) == (after, 1)
        beside = nn.Sequential(kind(before, after, 1, stride, bias=False), norm(after))
        self.shortcut = nn.Identity() if same else beside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.main(x) + self.shortcut(x)).relu()


def residual(
    kind: type[nn.Conv1d | nn.Conv2d], channels: int, classes: int, widths: Sequence[int], blocks: int, kernel: int
) -> nn.Sequential:
    """A residual network: each stage but the first halves what it reads."""
    along = kind is nn.Conv1d
    norm, pool = (nn.BatchNorm1d, nn.AdaptiveAvgPool1d) if along else (nn.BatchNorm2d, nn.AdaptiveAvgPool2d)
    halved = nn.MaxPool1d if along else nn.MaxPool2d
    layers = [kind(channels, widths[0], kernel, 2, kernel // 2, bias=False), norm(widths[0]), nn.ReLU(), halved(2)]
    before = widths[0]
    for number, width in enumerate(widths):
        for block in range(blocks):
            layers.append(Block(kind, before, width, kernel, 2 if number and not block else 1))
            before = width
    return nn.Sequential(*layers, pool(1), nn.Flatten(), nn.Linear(before, classes))


def fit(made: nn.Module, path: Path, epochs: int, shift: int, seed: int, rate: float = 4e-3) -> int:
    """Trains a network as its owner does, on signals moved in time; returns how many it has seen."""
    torch.manual_seed(seed)
    (x, y), (mean, std) = read(path, "train"), normalisation(path)
    x = (x - mean.view(-1, *[1] * (x.ndim - 2))) / std.view(-1, *[1] * (x.ndim - 2))
    steps = epochs * (len(x) // BATCH)
    optimizer = torch.optim.AdamW(made.parameters(), rate, weight_decay=0.05)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    made.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(BATCH)[: len(x) // BATCH]:
            moved = torch.roll(x[rows], int(torch.randint(-shift, shift + 1, ())), -1)
            loss = functional.cross_entropy(made(moved), y[rows], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
    made.eval()
    return steps * BATCH
