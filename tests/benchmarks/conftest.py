"""One model and seed of ``benchmarks/fronts.py`` in memory: a small trained SuperNet on tiny data."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, Teacher
from autotailor.finetuning.polishing import PolishConfig, Round
from autotailor.ir.space.metric import Metric
from autotailor.ir.supernet import SuperNet
from autotailor.profiling import DeviceConfig

CALIBRATION = CalibrationConfig(images=16, batch_size=16)


def network() -> nn.Module:
    """The original network."""
    torch.manual_seed(0)
    return networks.TinyResNet().eval()


@dataclass
class TinyRun:
    """Stands for ``controls.run.Run``."""

    folder: Path
    model: str = "tiny"
    seed: int = 0
    latencies: None = None
    cost_name: str = "macs"
    pretrain_images: int = 96
    finetune_images: int = 144
    joint: FinetuneConfig | None = None
    joint_images: int = 0
    data: DataSplits = field(default_factory=tiny_data.splits)
    finetune: FinetuneConfig = field(
        default_factory=lambda: FinetuneConfig(
            epochs=3, batch_size=16, lr=8e-3, strategy="alternating", subnets=2, calibration=CALIBRATION
        )
    )
    polish: PolishConfig = field(
        default_factory=lambda: PolishConfig(
            rounds=(Round(2, 1), Round(1, 1)), batch_size=16, lr=4e-3, calibration=CALIBRATION
        )
    )

    @property
    def parts(self) -> Path:
        return self.folder / "parts"

    @cached_property
    def net(self) -> SuperNet:
        return autotailor.compile(network(), networks.SPACES["resnet"], name="tiny", resolution=32)

    @property
    def compiled(self) -> SuperNet:
        return self.net

    @property
    def untrained(self) -> SuperNet:
        return self.net

    @cached_property
    def teacher(self) -> Teacher:
        return Teacher.largest_of(self.net, torch.device("cpu"))

    @cached_property
    def cost(self) -> Metric:
        return self.net.macs()

    @property
    def device(self) -> DeviceConfig:
        return DeviceConfig(name="host")

    def original(self) -> nn.Module:
        return network()


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return TinyRun(tmp_path)
