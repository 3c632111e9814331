"""Another network as teacher (``finetune.teacher``), on images in its own resolution and normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from autotailor.accuracy.calibration import resolution_of
from autotailor.compiler.sources.network import create_network
from autotailor.data.splits import DataSplits
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.pretraining import check_network
from autotailor.ir.errors import GraphError
from autotailor.ir.supernet import SuperNet


@dataclass(frozen=True)
class Teacher:
    """What teaches the SubNets.

    Attributes:
        network: images, normalised as those of the data, to logits; in evaluation mode, without gradients.
        resolution: side of its images in pixels; 0 takes them as the data give them.
        name: for messages.
    """

    network: nn.Module
    resolution: int
    name: str = "the original network"

    @classmethod
    def largest_of(cls, net: SuperNet, device: torch.device, name: str = "the original network") -> Teacher:
        """The largest SubNet of a SuperNet, on a device; before any training it is the original network."""
        network = net.build(net.largest(), logits=True).eval().requires_grad_(False).to(device)
        return cls(network, resolution_of(net.largest()), name)


class Renormalised(nn.Module):
    """A network on images with the mean and std of a dataset, which it turns into its own.

    Args:
        network: images ``[n, 3, R, R]`` to logits.
        data: whose mean and std the images have.
        mean, std: of the network, for each channel.
    """

    def __init__(self, network: nn.Module, data: DataSplits, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.scale: torch.Tensor
        self.shift: torch.Tensor
        self.network = network
        own_mean, own_std, data_mean, data_std = (
            torch.tensor(values, dtype=torch.float32).view(1, 3, 1, 1) for values in (mean, std, data.mean, data.std)
        )
        self.register_buffer("scale", data_std / own_std)
        self.register_buffer("shift", (data_mean - own_mean) / own_std)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.network(images * self.scale + self.shift)
        return logits


def load_teacher(source: str, data: DataSplits, device: torch.device | None = None) -> Teacher:
    """The network that a source names, with its own weights, on images of a dataset.

    A network with timm's ``pretrained_cfg`` takes its resolution, mean and std from there. Any other network takes the
    images as the data give them.

    Args:
        source: ``timm:NAME`` or ``module:factory``.
        data: the splits.
        device: on which the network computes; None is the processor.

    Raises:
        TrainingError: the network cannot be loaded, or has other classes than the data.
    """
    name = f"finetune.teacher {source}"
    try:
        network = create_network(source).eval().requires_grad_(False)
    except GraphError as error:
        raise TrainingError(f"{name}: {error}") from error
    wanted: Mapping[str, Any] = getattr(network, "pretrained_cfg", None) or {}
    if wanted.get("mean") and wanted.get("std"):
        network = Renormalised(network, data, tuple(wanted["mean"]), tuple(wanted["std"])).eval()
    side = int(wanted["input_size"][-1]) if wanted.get("input_size") else 0
    resolution = 0 if side == data.resolution else side
    network.to(device or torch.device("cpu"))
    try:
        check_network(network, data, resolution)
    except TrainingError as error:
        raise TrainingError(f"{name}: {error}") from error
    return Teacher(network, resolution, name)
