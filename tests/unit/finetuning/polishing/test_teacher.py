"""Who teaches SubNets that get weights of their own: the largest SubNet, or the original network where it is better."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
from autotailor.accuracy.teaching import AnsweredSet
from autotailor.compute.placement import CPU
from autotailor.data import DataSplits
from autotailor.finetuning import TrainingError
from autotailor.finetuning.polishing import PolishConfig, Round, polish
from autotailor.finetuning.polishing.teacher import choose_teacher


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
    with pytest.raises(TrainingError, match=r"unknown polish\.teacher 'me'; known are best, largest, original"):
        replace(config, teacher="me")


@pytest.mark.parametrize(
    ("labelled", "says"), [(True, "is right for"), (False, "agrees with the original network for")]
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
