"""Who teaches SubNets that get weights of their own: the largest SubNet, or the original network where it is better."""

from __future__ import annotations

import logging
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
import tiny_data
from autotailor.accuracy.teaching import AnsweredSet
from autotailor.compute.placement import CPU
from autotailor.data import DataSplits
from autotailor.finetuning import TrainingError
from autotailor.finetuning.polishing import PolishConfig, Round, polish
from autotailor.finetuning.polishing.teacher import choose_teacher
from oracles import Oracle


@pytest.fixture(scope="module")
def trained(resnet_net: autotailor.SuperNet) -> autotailor.SuperNet:
    """The SuperNet after a training that has forgotten everything: each weight has another sign."""
    module = resnet_net.module()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.neg_()
    return resnet_net.absorb(module, {})


def answers(net: autotailor.SuperNet, images: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = net.build(net.largest(), logits=True).eval()(images)
    return found


def known_by(net: autotailor.SuperNet, data: DataSplits) -> DataSplits:
    """The data with the answers of a network's largest SubNet as labels of the validation images."""
    images = torch.cat([images for images, _ in data.validation.batches(16)])
    return replace(data, validation=AnsweredSet(data.validation, answers(net, images).argmax(1).numpy()))


@pytest.mark.parametrize(
    ("teacher", "right", "named"),
    [
        ("best", "original", "the original network"),
        ("best", "largest", "the largest SubNet"),
        ("largest", "original", "the largest SubNet"),
        ("original", "largest", "the original network"),
    ],
)
def test_the_original_network_teaches_where_it_is_clearly_better_unless_one_is_named(
    teacher: str,
    right: str,
    named: str,
    resnet_net: autotailor.SuperNet,
    trained: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    caplog: pytest.LogCaptureFixture,
) -> None:
    nets = {"the original network": resnet_net, "the largest SubNet": trained}
    data = known_by(resnet_net if right == "original" else trained, tiny)
    with caplog.at_level(logging.INFO):
        found = choose_teacher(trained, resnet_net, data, replace(config, teacher=teacher), CPU)
    assert found.name == named
    images = torch.cat([images for images, _ in tiny.test.batches(16)])
    with torch.no_grad():
        assert torch.equal(found.network(images), answers(nets[named], images))
    assert not torch.equal(answers(resnet_net, images), answers(trained, images))
    assert (f"{named} teaches" in caplog.text) == (teacher == "best")


def test_networks_that_differ_by_chance_leave_it_to_the_largest_subnet(
    resnet_net: autotailor.SuperNet, trained: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig
) -> None:
    """The original network is right for one image of 40, the other for none: 2.5 points, one standard error."""
    images = torch.cat([images for images, _ in tiny.validation.batches(16)])
    before, now = (answers(net, images).argmax(1).numpy() for net in (resnet_net, trained))
    labels = np.array([min({0, 1, 2} - {a, b}) for a, b in zip(before.tolist(), now.tolist(), strict=True)])
    one = np.flatnonzero(before != now)[0]
    labels[one] = before[one]
    assert ((before == labels).sum(), (now == labels).sum()) == (1, 0)
    data = replace(tiny, validation=AnsweredSet(tiny.validation, labels))
    assert choose_teacher(trained, resnet_net, data, config, CPU).name == "the largest SubNet"


def test_a_race_learns_from_the_teacher(
    resnet_net: autotailor.SuperNet,
    trained: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    tmp_path: Path,
) -> None:
    subnet = resnet_net.smallest()
    short = replace(config, rounds=(Round(1, 1),))
    weights = {}
    for teacher, original in {"best": resnet_net, "original": resnet_net, "largest": resnet_net}.items():
        data = known_by(resnet_net, tiny)
        told = replace(short, teacher=teacher)
        found, _ = polish(trained, original, data, {"b": [subnet]}, {subnet.id: -1.0}, told, tmp_path / teacher)
        assert found["b"].weights is not None
        weights[teacher] = found["b"].weights
    assert all((weights["best"][name] == value).all() for name, value in weights["original"].items())
    assert any((weights["best"][name] != value).any() for name, value in weights["largest"].items())


def test_an_unknown_teacher_is_refused(config: PolishConfig) -> None:
    with pytest.raises(TrainingError, match=r"teacher: unknown teacher 'me'; known are best, largest, original, timm:"):
        replace(config, teacher="me")


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module of the user's with teachers."""
    module = types.ModuleType("teachers_of_mine")
    vars(module).update(oracle=Oracle, silent=lambda: Oracle(0.0), several=lambda: torch.nn.Identity())
    monkeypatch.setitem(sys.modules, "teachers_of_mine", module)
    return module


def test_a_race_learns_from_a_network_that_the_user_names_and_goes_on_bit_by_bit(
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    mine: types.ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subnet = resnet_net.smallest()

    def polished(folder: str, data: DataSplits = tiny, **changed: str) -> dict[str, np.ndarray]:
        told = replace(config, rounds=(Round(1, 2),), **changed)
        found, _ = polish(resnet_net, resnet_net, data, {"b": [subnet]}, {subnet.id: -1.0}, told, tmp_path / folder)
        assert found["b"].weights is not None
        return dict(found["b"].weights)

    whole = polished("whole", teacher="teachers_of_mine:oracle")
    with pytest.raises(KeyboardInterrupt):
        polished("killed", tiny_data.splits(fail_at=(10_001, 1)), teacher="teachers_of_mine:oracle")
    resumed = polished("killed", teacher="teachers_of_mine:oracle")
    assert all(np.array_equal(resumed[name], value) for name, value in whole.items())
    other = polished("other", teacher="original")
    assert any(not np.array_equal(other[name], value) for name, value in whole.items())
    polished("whole", tiny_data.splits(fail_at=(10_000, 1)), teacher="teachers_of_mine:oracle")  # trains nothing again
    monkeypatch.setattr(mine, "oracle", lambda: Oracle(8.0))  # other weights make another training
    with pytest.raises(KeyboardInterrupt):
        polished("whole", tiny_data.splits(fail_at=(10_000, 1)), teacher="teachers_of_mine:oracle")


def test_a_named_network_that_cannot_teach_is_refused_under_the_key_of_polishing(
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    mine: types.ModuleType,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, says in {
        "silent": r"polish\.teacher teachers_of_mine:silent is right for 20\.0%.*set polish\.accept_chance to true",
        "several": r"polish\.teacher teachers_of_mine:several: Identity gives \[2, 3, 32, 32\] for 2 images, expected",
        "absent": r"polish\.teacher teachers_of_mine:absent: .*name a function of the module",
    }.items():
        told = replace(config, teacher=f"teachers_of_mine:{name}")
        with pytest.raises(TrainingError, match=says):
            choose_teacher(resnet_net, resnet_net, tiny, told, CPU)
    accepted = replace(config, teacher="teachers_of_mine:silent", accept_chance=True)
    assert choose_teacher(resnet_net, resnet_net, tiny, accepted, CPU).name == "polish.teacher teachers_of_mine:silent"
    assert "polish.teacher teachers_of_mine:silent is right for 20.0%" in caplog.text
    assert accepted.identity == replace(accepted, accept_chance=False).identity


@pytest.mark.parametrize(
    ("labelled", "says"), [(True, "has accuracy"), (False, "agrees with the original network for")]
)
def test_the_choice_is_told_with_what_was_measured(
    labelled: bool,
    says: str,
    resnet_net: autotailor.SuperNet,
    trained: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = replace(known_by(resnet_net, tiny), labelled=labelled)
    with caplog.at_level(logging.INFO):
        choose_teacher(trained, resnet_net, data, replace(config, teacher="best"), CPU)
    assert f"polish: the original network teaches; the largest SubNet {says} " in caplog.text
