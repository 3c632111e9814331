"""What the checks of an accelerator work with: generated pictures, a network, its SuperNet, and the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

import autotailor
from autotailor import config, data, finetuning, sensitivity
from autotailor.compute.accelerator import resolve
from autotailor.data.splits import Batch, DataSplits
from autotailor.finetuning.polishing import PolishConfig
from autotailor.project import places

CLASSES = 4
SETTLING = 2
"""Batches from which a network without trained weights gets its statistics of BatchNorm."""


@dataclass(frozen=True)
class Effort:
    """How large everything is.

    Attributes:
        network: ``resnet50`` of torchvision, or ``resnet_digits`` of this package.
        space: the section ``space`` of a model's configuration.
        resolution: of the pictures, pixels.
        pictures: of each class.
        batch_size: images of a step.
        epochs: of fine-tuning.
        images: that recalibrate a SubNet.
        steps: that are timed.
        minutes: after which no further check begins.
    """

    network: str
    space: Mapping[str, Any]
    resolution: int
    pictures: int
    batch_size: int
    epochs: int
    images: int
    steps: int
    minutes: float = 8.0


_SPACE = {
    "resolution": [128, 160],
    "depth": [0, 1],
    "width": [0.75, 1.0],
    "blocks": {"Bottleneck": {"expand_ratio": [0.125, 0.25]}},
}
FULL = Effort("resnet50", _SPACE, resolution=160, pictures=96, batch_size=32, epochs=2, images=128, steps=8)
TINY = Effort(
    "resnet_digits",
    {"divisor": 4, "width": [0.5, 1.0]},
    resolution=32,
    pictures=16,
    batch_size=8,
    epochs=1,
    images=16,
    steps=1,
)


@dataclass(frozen=True)
class Lab:
    """One examination.

    Attributes:
        effort: sizes.
        device: that is examined.
        folder: of pictures, checkpoints and journals; new or empty.
    """

    effort: Effort
    device: torch.device
    folder: Path

    @cached_property
    def sections(self) -> Mapping[str, Any]:
        """The configuration of a run on this accelerator, with small numbers."""
        effort = self.effort
        polish = f"[{{candidates: 2, images: {4 * effort.batch_size}}}]"
        return config.compose(
            places.CONF,
            "resnet_digits",
            "macs",
            [
                *("data=folder", "finetune=compofa", "polish=given", f"accelerator='{self.device}'"),
                *(f"data.root='{self._written}'", "data.fractions=[0.5, 0.25, 0.25]", "data.cache=''"),
                *(f"model.resolution={effort.resolution}", f"model.num_classes={CLASSES}"),
                *(f"finetune.epochs={effort.epochs}", f"finetune.batch_size={effort.batch_size}"),
                *("finetune.panel.every=0", "finetune.accept_chance=true", f"polish.rounds={polish}"),
                *("polish.checks=2", f"polish.batch_size={effort.batch_size}"),
                *(f"finetune.calibration.images={effort.images}", f"moments.images={effort.images}"),
            ],
        )

    @cached_property
    def _written(self) -> Path:
        """The folder of the generated JPEG files, one folder for each class."""
        random, root, side = np.random.default_rng(0), self.folder / "pictures", self.effort.resolution * 5 // 4
        if root.is_dir():  # another process of this examination has written them
            return root
        for number in range(CLASSES):
            (root / f"class_{number}").mkdir(parents=True)
            base = random.integers(0, 256, (4, 4, 3))
            for picture in range(self.effort.pictures):
                pixels = np.clip(base + random.integers(-60, 61, base.shape), 0, 255).astype(np.uint8)
                path = root / f"class_{number}" / f"{picture:04d}.jpg"
                Image.fromarray(pixels).resize((side, side)).save(path, quality=90)
        return root

    @cached_property
    def data(self) -> DataSplits:
        """The pictures."""
        return data.load(self.sections["data"])

    @cached_property
    def batch(self) -> Batch:
        """The first batch of training pictures."""
        return next(iter(self.data.train.batches(0, self.effort.batch_size)))

    @cached_property
    def network(self) -> nn.Module:
        """The network, on the processor."""
        torch.manual_seed(0)
        if self.effort.network == "resnet_digits":
            from autotailor.zoo.resnet_digits import resnet_digits

            network: nn.Module = resnet_digits(num_classes=CLASSES)
        else:
            network = _resnet50()
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = None  # the mean over all batches
        with torch.no_grad():
            for epoch in range(SETTLING):
                network.train()(next(iter(self.data.train.batches(epoch, self.effort.batch_size)))[0])
        return network.eval()

    @cached_property
    def net(self) -> autotailor.SuperNet:
        """The SuperNet, as compiled."""
        return autotailor.compile(self.network, self.effort.space, name="checked", resolution=self.effort.resolution)

    @property
    def finetune(self) -> finetuning.FinetuneConfig:
        """Of fine-tuning."""
        return finetuning.FinetuneConfig.from_section(self.sections["finetune"])

    @property
    def polish(self) -> PolishConfig:
        """Of polishing."""
        return PolishConfig.from_section(self.sections["polish"])

    @property
    def sensitivity(self) -> sensitivity.SensitivityConfig:
        """Of evaluations."""
        calibration = self.sections["finetune"]["calibration"]
        return sensitivity.SensitivityConfig.from_section(self.sections["sensitivity"], calibration)


def lab(effort: Effort, accelerator: str, folder: Path) -> Lab:
    """What the checks work with.

    Raises:
        AcceleratorError: the name is unknown, or this machine does not have the accelerator.
    """
    return Lab(effort, resolve(accelerator), folder)


def _resnet50() -> nn.Module:
    """Torchvision's ResNet50 for the generated classes, with trained weights where PyTorch's cache has them."""
    from torchvision.models import resnet50

    network = resnet50(num_classes=CLASSES)
    checkpoints = sorted(Path(torch.hub.get_dir()).glob("checkpoints/resnet50-*.pth"))
    if checkpoints:
        weights = torch.load(checkpoints[-1], map_location="cpu", weights_only=True)
        network.load_state_dict({k: v for k, v in weights.items() if not k.startswith("fc.")}, strict=False)
    return network  # type: ignore[no-any-return]
