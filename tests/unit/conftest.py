"""Small data and a small network in training, which tests of training and of accuracy share."""

import shutil
from pathlib import Path

import pytest
import torch

import autotailor
import finished_runs
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, FinetuneResult, PretrainResult, finetune, pretrain
from training import PRETRAIN, fresh

CALIBRATION = CalibrationConfig(images=32, batch_size=16)


@pytest.fixture(scope="session")
def tiny() -> DataSplits:
    return tiny_data.splits()


@pytest.fixture
def finetune_config() -> FinetuneConfig:
    return FinetuneConfig(epochs=2, batch_size=16, calibration=CALIBRATION, subnets=3, accept_chance=True)


@pytest.fixture(scope="session")
def plain_net() -> autotailor.SuperNet:
    """A small ResNet as PyTorch initialises it, so that training behaves."""
    torch.manual_seed(0)
    return autotailor.compile(networks.TinyResNet().eval(), networks.SPACES["resnet"], name="plain", resolution=32)


@pytest.fixture(scope="session")
def finetuned(
    plain_net: autotailor.SuperNet, tiny: DataSplits, tmp_path_factory: pytest.TempPathFactory
) -> FinetuneResult:
    config = FinetuneConfig(epochs=2, batch_size=16, calibration=CALIBRATION, subnets=3, accept_chance=True)
    workdir: Path = tmp_path_factory.mktemp("finetuned")
    return finetune(plain_net, tiny, config, workdir)


@pytest.fixture(scope="session")
def pretrained(tiny: DataSplits, tmp_path_factory: pytest.TempPathFactory) -> PretrainResult:
    return pretrain(fresh(), tiny, PRETRAIN, tmp_path_factory.mktemp("pretrained"))


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the default network; tests that change it take a copy."""
    return finished_runs.make(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def copied_run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, to be changed."""
    shutil.copytree(finished_run.parents[1], tmp_path / "results")
    return tmp_path / "results" / "resnet_digits" / "host"
