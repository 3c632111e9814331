"""A person's activity recognition: windows of a sensor's acceleration and turning, and a small network trained on them.

Two dozen persons carry the sensor in their own way; four activities differ in frequency, harmonics and axis.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

LENGTH, CHANNELS = 64, 6
ACTIVITIES = ("cycling", "running", "stairs", "walking")
_PACE = {"cycling": 1.3, "running": 2.6, "stairs": 1.6, "walking": 1.9}
_SECOND = {"cycling": 0.1, "running": 0.5, "stairs": 0.7, "walking": 0.4}


def write_windows(path: Path, persons: int = 24, each: int = 10, seed: int = 0) -> Path:
    """Writes ``x`` [n, channels, length], ``y`` (names) and ``groups`` (persons) as an ``.npz`` file."""
    random = np.random.default_rng(seed)
    seconds = np.arange(LENGTH) / 25
    x, y, groups = [], [], []
    for person in range(persons):
        turn = np.linalg.qr(random.normal(size=(3, 3)))[0] * random.uniform(0.7, 1.3)
        own = random.uniform(0.85, 1.15)
        for activity in ACTIVITIES:
            for _ in range(each):
                phase = 2 * np.pi * (_PACE[activity] * own * random.uniform(0.93, 1.07) * seconds + random.uniform())
                up = np.sin(phase) + _SECOND[activity] * np.sin(2 * phase + 0.6)
                ahead = 0.6 * np.cos(phase) * (1.5 if activity == "cycling" else 1)
                side = 0.4 * np.sin(phase / 2)
                moved = turn @ np.stack([up, ahead, side])
                turned = np.gradient(moved, axis=1) * 4 @ np.eye(LENGTH)
                x.append(np.concatenate([moved, turned]) + 0.5 * random.normal(size=(CHANNELS, LENGTH)))
                y.append(activity)
                groups.append(f"person {person}")
    np.savez(path, x=np.array(x, dtype=np.float32), y=np.array(y), groups=np.array(groups))
    return path


def write_recordings(archive: Path, folder: Path) -> Path:
    """Writes the windows of each person and activity behind each other, as ``folder/ACTIVITY/PERSON.csv``."""
    with np.load(archive) as arrays:
        for activity in ACTIVITIES:
            (folder / activity).mkdir(parents=True, exist_ok=True)
            for person in np.unique(arrays["groups"]):
                own = arrays["x"][(arrays["y"] == activity) & (arrays["groups"] == person)]
                rows = own.transpose(0, 2, 1).reshape(-1, CHANNELS)
                path = folder / activity / f"{person}.csv"
                np.savetxt(path, rows, "%.7g", ",", header="ax,ay,az,gx,gy,gz", comments="")
    return folder


class Block(nn.Module):
    """Two convolutions along time with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(width, 2 * width, 5, padding=2, bias=False), nn.BatchNorm1d(2 * width), nn.ReLU(),
            nn.Conv1d(2 * width, width, 5, padding=2, bias=False), nn.BatchNorm1d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, width, length]`` to the same."""
        return torch.relu(x + self.body(x))


def network() -> nn.Module:
    """Windows ``[n, 6, 64]`` to logits of four activities."""

    def down(inputs: int, outputs: int) -> list[nn.Module]:
        layer = nn.Conv1d(inputs, outputs, 5, 2, 2, bias=False)
        return [layer, nn.BatchNorm1d(outputs), nn.ReLU(), Block(outputs), Block(outputs)]

    head = nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, len(ACTIVITIES))
    return nn.Sequential(*down(CHANNELS, 32), *down(32, 64), *head)


def write_network(windows: Path, path: Path, epochs: int = 8) -> Path:
    """Trains a network on the windows of the first fourteen persons, and writes it as ONNX."""
    torch.manual_seed(0)
    with np.load(windows) as archive:
        known = np.isin(archive["groups"], [f"person {i}" for i in range(14)])
        x = torch.from_numpy(archive["x"][known])
        y = torch.from_numpy(np.searchsorted(ACTIVITIES, archive["y"][known]))
    trained = network()
    steps = epochs * (len(x) // 32)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=3e-3, weight_decay=0.02)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32)[: len(x) // 32]:
            loss = nn.functional.cross_entropy(trained(x[rows]), y[rows], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
    axes = {"window": {0: "n"}, "activity": {0: "n"}}
    example = torch.zeros(1, CHANNELS, LENGTH)
    torch.onnx.export(trained.eval(), (example,), str(path), input_names=["window"], output_names=["activity"],
                      dynamic_axes=axes, dynamo=False)  # fmt: skip
    return path
