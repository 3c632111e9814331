"""Another network as teacher, on images in its own resolution and normalisation.

The keys ``finetune.teacher`` and ``polish.teacher`` name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from autotailor.accuracy.calibration import resolution_of
from autotailor.compiler.sources.network import FetchError, create_network, pretrained_config
from autotailor.data.splits import DataSplits
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.pretraining import check_outputs
from autotailor.ir.errors import GraphError
from autotailor.ir.supernet import SuperNet
from autotailor.task.interface import Task
from autotailor.task.registry import of

KEY = "finetune.teacher"


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

    def sees(self, side: int, at_side: bool) -> int:
        """The side of its images for a student of a side; 0 takes them as the data give them (``Task.at_side``)."""
        return side if at_side else self.resolution

    @classmethod
    def largest_of(
        cls, net: SuperNet, device: torch.device, name: str = "the original network", *, logits: bool = True
    ) -> Teacher:
        """The largest SubNet of a SuperNet, on a device; before any training it is the original network.

        ``logits`` says whether a final activation is left out (``Task.logits``).
        """
        network = net.build(net.largest(), logits=logits).eval().requires_grad_(False).to(device)
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


def load_teacher(source: str, data: DataSplits, device: torch.device | None = None, key: str = KEY) -> Teacher:
    """The network that a source names, with its own weights, on images of a dataset.

    A network with timm's ``pretrained_cfg`` takes its resolution, mean and std from there; one that cannot read images
    of that resolution, because it was made for another one, that of the data. Any other network takes the images as
    the data give them.

    Args:
        source: ``timm:NAME`` or ``module:factory``.
        data: the splits.
        device: on which the network computes; None is the processor.
        key: of the configuration that names the source, for messages.

    Raises:
        TrainingError: the network cannot be loaded, or has other classes than the data.
    """
    name = f"{key} {source}"
    network = _created(source, name)
    preparation = _wanted(network)
    if preparation.get("mean") and preparation.get("std"):
        network = Renormalised(network, data, tuple(preparation["mean"]), tuple(preparation["std"])).eval()
    network.to(device or torch.device("cpu"))
    if data.signal:
        check_outputs(network, of(data), data.num_classes, data.signal.shape, f"data {data.name}")
        return Teacher(network, 0, name)
    try:
        side = _fitting(network, preparation, of(data), data.num_classes, data.resolution, f"data {data.name}")
    except TrainingError as error:
        raise TrainingError(f"{name}: {error}") from error
    return Teacher(network, 0 if side == data.resolution else side, name)


def check_teacher(source: str, task: Task, classes: int | None, resolution: int, key: str = KEY) -> None:
    """Refuses a teacher that cannot be made or that has other classes than the data, before the data are read.

    Weights of timm may have to be fetched, so that a network of timm is only asked for its classes; ``fetch_teacher``
    fetches them.

    Args:
        source: ``timm:NAME`` or ``module:factory``.
        task: of the data.
        classes: number of classes of the data; None where it is not known yet.
        resolution: side of the data's images in pixels.
        key: of the configuration that names the source, for messages.

    Raises:
        TrainingError: the teacher cannot be used.
    """
    name = f"{key} {source}"
    if source.startswith("timm:"):
        own = _classes_of_timm(source, name)
        if own is not None and classes is not None and own != classes:
            raise TrainingError(
                f"{name}: its own weights have {own} classes, and the data have {classes}; name a teacher that was "
                f"trained on these classes: a function of yours (module:function) can make one and load its checkpoint"
            )
        return
    fetch_teacher(source, task, classes, resolution, key)


def fetch_teacher(source: str, task: Task, classes: int | None, resolution: int, key: str = KEY) -> None:
    """Makes a teacher with its weights, which timm may have to fetch, and tries it on images of the data's size.

    Args:
        source: ``timm:NAME`` or ``module:factory``.
        task: of the data.
        classes: number of classes of the data; None where it is not known yet.
        resolution: side of the data's images in pixels; 0 where the data are signals, on which it is tried later.
        key: of the configuration that names the source, for messages.

    Raises:
        TrainingError: the weights cannot be fetched, or the teacher cannot be made or used.
    """
    name = f"{key} {source}"
    network = _created(source, name)
    if classes is not None and resolution:
        try:
            _fitting(network, _wanted(network), task, classes, resolution, "the data")
        except TrainingError as error:
            raise TrainingError(f"{name}: {error}") from error


def _created(source: str, name: str) -> nn.Module:
    """The network that a source names, in evaluation mode and without gradients."""
    try:
        return create_network(source).eval().requires_grad_(False)
    except FetchError as error:
        raise TrainingError(
            f"{name}: {error.what}; fetch them on a machine with a network and bring its folder of downloads here "
            f"(HF_HOME), or name a function of yours (module:function) that makes the network and loads a checkpoint"
        ) from error
    except GraphError as error:
        raise TrainingError(f"{name}: {error}") from error


def _classes_of_timm(source: str, name: str) -> int | None:
    """Classes of the weights that timm has for a network; None where timm does not say."""
    try:
        config = pretrained_config(source)
    except GraphError as error:
        raise TrainingError(f"{name}: {error}") from error
    return None if config is None else config.num_classes


def _wanted(network: nn.Module) -> Mapping[str, Any]:
    """What a network of timm says of its images; empty for other networks."""
    return getattr(network, "pretrained_cfg", None) or {}


def _fitting(
    network: nn.Module, preparation: Mapping[str, Any], task: Task, classes: int, resolution: int, images: str
) -> int:
    """Side of the images in pixels that a network reads: the one that timm says, or ``resolution``.

    Raises:
        TrainingError: see ``check_outputs``.
    """
    side = _side(preparation) or resolution
    try:
        check_outputs(network, task, classes, (3, side, side), images)
    except TrainingError:
        if side == resolution:
            raise
        with suppress(TrainingError):
            check_outputs(network, task, classes, (3, resolution, resolution), images)
            return resolution
        raise
    return side


def _side(preparation: Mapping[str, Any]) -> int:
    """Side of the images in pixels that a network of timm wants; 0 where it does not say."""
    return int(preparation["input_size"][-1]) if preparation.get("input_size") else 0
