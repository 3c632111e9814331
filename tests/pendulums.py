"""Windows of a pendulum's motion, and a network that tells its length in centimetres, from 0 to ``LONGEST``.

The longer a pendulum and the wider its swing, the slower it is, so that a period alone does not tell the length.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

import moving

STEPS, CHANNELS, LONGEST = 64, 2, 260.0


def write_windows(path: Path, count: int = 1200, seed: int = 0) -> Path:
    """Writes ``x`` [n, channels, steps], angle and its change, and ``y`` [n], centimetres, as an ``.npz`` file."""
    random, seconds = np.random.default_rng(seed), np.arange(STEPS) / 20
    metres, wide, damping = (
        random.uniform(0.2, 2.5, count),
        random.uniform(0.2, 1.4, count),
        random.uniform(0, 0.3, count),
    )
    pace = np.sqrt(9.81 / metres) * (1 - wide**2 / 16)
    phase = pace[:, None] * seconds + random.uniform(0, 2 * np.pi, count)[:, None]
    angle = wide[:, None] * np.exp(-damping[:, None] * seconds) * np.sin(phase)
    x = np.stack([angle, np.gradient(angle, seconds, axis=1) / 3], 1) + 0.15 * random.normal(
        size=(count, CHANNELS, STEPS)
    )
    np.savez(path, x=x.astype(np.float32), y=(100 * metres).astype(np.float32))
    return path


class Length(nn.Module):
    """Windows ``[n, 2, 64]`` to lengths ``[n, 1]``; the final Sigmoid is part of the answer."""

    def __init__(self) -> None:
        super().__init__()

        def down(inputs: int, outputs: int) -> list[nn.Module]:
            layer = nn.Conv1d(inputs, outputs, 5, 2, 2, bias=False)
            return [layer, nn.BatchNorm1d(outputs), nn.ReLU(), moving.Block(outputs), moving.Block(outputs)]

        self.trunk = nn.Sequential(*down(CHANNELS, 24), *down(24, 48), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.last = nn.Linear(48, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Centimetres."""
        return LONGEST * torch.sigmoid(self.last(self.trunk(x)))


def write_network(windows: Path, path: Path, epochs: int = 12) -> Path:
    """Trains a network on two thirds of the windows, and writes it as ONNX."""
    torch.manual_seed(0)
    with np.load(windows) as archive:
        known = 2 * len(archive["x"]) // 3
        x, y = torch.from_numpy(archive["x"][:known]), torch.from_numpy(archive["y"][:known, None])
    trained = Length()
    optimizer = torch.optim.AdamW(trained.parameters(), lr=3e-3, weight_decay=0.02)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * (len(x) // 32))
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32)[: len(x) // 32]:
            loss = nn.functional.mse_loss(trained(x[rows]) / LONGEST, y[rows] / LONGEST)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
    axes = {"window": {0: "n"}, "length": {0: "n"}}
    example = torch.zeros(1, CHANNELS, STEPS)
    torch.onnx.export(trained.eval(), (example,), str(path), input_names=["window"], output_names=["length"],
                      dynamic_axes=axes, dynamo=False)  # fmt: skip
    return path
