"""A SuperNet whose SubNets can be polished, and what the race needs to know about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import autotailor
import tiny_data
from autotailor.accuracy import CalibrationConfig
from autotailor.data import DataSplits
from autotailor.finetuning.polishing import PolishConfig, Round
from autotailor.ir.space.subnet import SubNet

Contests = Mapping[str, Sequence[SubNet]]


@pytest.fixture(scope="package", name="tiny")
def tiny_fixture() -> DataSplits:
    return tiny_data.splits()


@pytest.fixture(scope="package")
def contests(resnet_net: autotailor.SuperNet) -> Contests:
    """Two budgets; the looser one also admits what the tighter one does."""
    random = np.random.default_rng(3)
    drawn = list(dict.fromkeys(resnet_net.sample(random) for _ in range(6)))
    tight = [resnet_net.smallest(), *drawn[:2]]
    return {"budget_01": tight, "budget_02": [*tight, *drawn[2:4], resnet_net.largest()]}


@pytest.fixture(scope="package")
def inherited(contests: Contests) -> Mapping[str, float]:
    """Accuracies that rise in the order of the list, low enough to be beaten; the last one is the largest SubNet's."""
    return {subnet.id: 10.0 + i for i, subnet in enumerate(contests["budget_02"])}


@pytest.fixture(scope="package")
def config() -> PolishConfig:
    return PolishConfig(
        rounds=(Round(2, 1), Round(1, 2)),
        batch_size=16,
        lr=2e-3,
        checkpoint_seconds=0.0,
        calibration=CalibrationConfig(images=48, batch_size=24),
    )
