"""Polishing of weights that arrived: statistics stay, nothing ends below its beginning, and a kill changes no bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import autotailor
import networks
import tiny_data
from autotailor.accuracy import Calibrator
from autotailor.data import DataSplits
from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.finetuning import DistillationConfig, FinetuneConfig, finetune, pretrain
from autotailor.finetuning.polishing import PolishConfig, Polished, Round, polish
from autotailor.ir.space.subnet import SubNet
from training import PRETRAIN, fresh

Contests = Mapping[str, Sequence[SubNet]]
Race = tuple[dict[str, Polished], pd.DataFrame]


@pytest.fixture(scope="module")
def untrained(tiny: DataSplits, config: PolishConfig, tmp_path_factory: pytest.TempPathFactory) -> autotailor.SuperNet:
    """The SuperNet that ``finetune=none`` leaves of a trained network."""
    network, training = fresh(), replace(PRETRAIN, epochs=6, lr=2e-2)
    network.load_state_dict(pretrain(network, tiny, training, tmp_path_factory.mktemp("given")).state_dict)
    net = autotailor.compile(network.eval(), networks.SPACES["resnet"], name="given", resolution=32)
    none = FinetuneConfig(epochs=0, batch_size=16, calibration=config.calibration, accept_chance=True)
    return finetune(net, tiny, none, tmp_path_factory.mktemp("none")).net


@pytest.fixture(scope="module")
def contest(untrained: autotailor.SuperNet) -> Contests:
    return {"budget_01": [untrained.smallest(), untrained.sample(np.random.default_rng(5))]}


@pytest.fixture(scope="module")
def given(config: PolishConfig) -> PolishConfig:
    return replace(
        config,
        rounds=(Round(2, images=48), Round(1, images=192)),
        optimizer="adamw",
        rates=(1e-3, 1e4),
        augmentation=AugmentationConfig(mixup=1.0, mixed=0.5),
        teacher="original",
        distillation=DistillationConfig(weight=1.0),
        frozen=True,
        features=1.0,
        streams=3.0,
        checks=4,
        judge="divergence",
    )


def raced(
    net: autotailor.SuperNet, contest: Contests, config: PolishConfig, folder: Path, data: DataSplits | None = None
) -> Race:
    inherited = {subnet.id: 0.0 for subnets in contest.values() for subnet in subnets}
    return polish(net, net, data or tiny_data.splits(), contest, inherited, config, folder)


@pytest.fixture(scope="module")
def race(
    untrained: autotailor.SuperNet, contest: Contests, given: PolishConfig, tmp_path_factory: pytest.TempPathFactory
) -> Race:
    return raced(untrained, contest, given, tmp_path_factory.mktemp("given"))


def norms(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: weight for name, weight in weights.items() if "running" in name}


def test_the_statistics_stay_and_all_else_is_trained(
    race: Race, untrained: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig
) -> None:
    (found,) = race[0].values()
    assert found.weights is not None
    statistics = Calibrator(tiny, config.calibration).statistics(untrained.module().eval(), found.subnet)
    begun = untrained.slice(found.subnet, statistics).weights
    assert norms(begun)
    for name, weight in found.weights.items():
        if name in norms(begun):
            assert np.array_equal(weight, begun[name])
    assert any(not np.array_equal(weight, begun[name]) for name, weight in found.weights.items())
    assert race[1].groupby("round")["images"].first().tolist() == [48, 48 + 192]


def test_a_killed_race_ends_in_the_same_bits(
    race: Race, untrained: autotailor.SuperNet, contest: Contests, given: PolishConfig, tmp_path: Path
) -> None:
    for fail_at in ((10_001, 0), (10_005, 2)):
        with pytest.raises(KeyboardInterrupt):
            raced(untrained, contest, replace(given, rates=(1e-3,)), tmp_path, tiny_data.splits(fail_at))
    found, table = raced(untrained, contest, replace(given, rates=(1e-3,)), tmp_path)
    pd.testing.assert_frame_equal(table, race[1])  # whose range test has taken this one of two
    for name, each in race[0].items():
        ours, theirs = found[name].weights, each.weights
        assert ours is not None
        assert theirs is not None
        assert all(np.array_equal(ours[weight], theirs[weight]) for weight in theirs)


def test_a_training_that_makes_its_subnets_worse_stops_early_and_leaves_them_as_they_were(
    untrained: autotailor.SuperNet,
    given: PolishConfig,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    largest = untrained.largest().assignment
    near = {"budget_01": [SubNet.from_assignment(untrained.space, {**largest, "resolution": 24})]}
    high = replace(given, rates=(), lr=0.3, features=0.0, streams=0.0, rounds=(Round(1, images=768),))
    begun = raced(untrained, near, replace(high, lr=1e-30), tmp_path / "still")[1]
    table = raced(untrained, near, high, tmp_path / "high")[1]
    assert caplog.text.count("of its training, which makes it worse: its loss on the validation images is") == 1
    assert table["images"].max() < 768
    columns = ["subnet", "accuracy_validation"]
    pd.testing.assert_frame_equal(table[columns], begun[columns])
    again = raced(untrained, near, high, tmp_path / "high")[1]  # from the checkpoint, which knows who has stopped
    pd.testing.assert_frame_equal(again, table)
