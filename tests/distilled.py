"""A small network with alternatives of blocks in closed form, and a short training of these."""

from collections.abc import Mapping
from typing import Any

import torch

import autotailor
from autotailor import accuracy
from autotailor.finetuning import DistilConfig
from autotailor.ir.supernet import SuperNet
from autotailor.zoo.resnet_digits import resnet_digits
from tiny_data import splits

CONFIG = DistilConfig(images=192, batch_size=16, lr=2e-3, optimizer="adamw", weight_decay=0.0, threads=1, own_path=0.0)
"""Each alternative alone."""


def prepared(space: Mapping[str, Any]) -> SuperNet:
    """A small ResNet with a space."""
    torch.manual_seed(0)
    compiled = autotailor.compile(resnet_digits(num_classes=5), space, resolution=32)
    few = accuracy.CalibrationConfig(images=48, batch_size=16)
    return accuracy.prepare(compiled, splits(), accuracy.MomentsConfig(images=48, batch_size=16), few).net
