"""Weights are judged by right answers, or by how near all answers are to the teacher's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import autotailor
import networks
from autotailor.data import DataSplits
from autotailor.finetuning import DistillationConfig, FinetuneConfig
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing import PolishConfig, Polished, Round, polish
from autotailor.finetuning.polishing.course import Course
from autotailor.finetuning.polishing.judging import Judging
from autotailor.finetuning.polishing.standing import Jury, Standing
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Modification
from autotailor.task.tasks.classification import Classification

Contests = Mapping[str, Sequence[SubNet]]


class Linear(nn.Module):
    """Logits that are linear in the mean colours."""

    def __init__(self, classes: int, seed: int) -> None:
        super().__init__()
        self.map = nn.Linear(3, classes)
        nn.init.normal_(self.map.weight, generator=torch.Generator().manual_seed(seed))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.map(images.mean((2, 3)))
        return found


def test_the_divergence_is_that_of_the_teachers_answers(tiny: DataSplits) -> None:
    images = tiny.validation
    student, teacher = Linear(tiny.num_classes, 0), Linear(tiny.num_classes, 1)
    found = Jury(images, Teacher(teacher, 0)).standing(student, 0)
    pixels, labels = (
        torch.cat([torch.as_tensor(each) for each in part]) for part in zip(*images.batches(7), strict=True)
    )
    with torch.no_grad():
        said, true = (network(pixels.float()).double().softmax(1).numpy() for network in (student, teacher))
    assert found.divergence == pytest.approx(
        np.mean([stats.entropy(p, q) for p, q in zip(true, said, strict=True)]), rel=1e-5
    )
    assert found.accuracy == pytest.approx(100 * np.mean(said.argmax(1) == labels.numpy()))
    assert math.isnan(Jury(images, None).standing(student, 0).divergence)


def test_a_teacher_of_lengths_answers_images_of_the_students_size(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = resnet_net.build(resnet_net.largest(), logits=True)
    apart = []
    for at_side in (False, True):
        monkeypatch.setattr(Classification, "at_side", at_side)
        jury = Jury(tiny.validation, Teacher(network, 32))
        apart.append([jury.standing(network, side).divergence for side in (32, 24)])
    assert apart[0][1] > 1e-5
    assert [apart[0][0], *apart[1]] == pytest.approx([0.0, 0.0, 0.0], abs=1e-7)


@pytest.mark.parametrize(("at_side", "resolutions", "is_taught"), [(True, 2, False), (True, 1, True), (False, 2, True)])
def test_answers_about_images_of_several_sizes_are_not_compared_where_they_tell_lengths(
    at_side: bool,
    resolutions: int,
    is_taught: bool,
    resnet_net: autotailor.SuperNet,
    tiny: DataSplits,
    config: PolishConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Classification, "at_side", at_side)
    net = (
        resnet_net if resolutions > 1 else autotailor.compile(networks.make("resnet"), {"depth": [0, 1]}, resolution=32)
    )
    course = Course(net, tiny, replace(config, judge="divergence"), torch.device("cpu"))
    assert Judging(course, {}, lambda: Teacher(Linear(5, 0), 0)).is_taught == is_taught


def test_nearer_answers_gain_unless_fewer_are_right_beyond_chance() -> None:
    before = Standing(70.0, 3.0, 0.4)
    assert Standing(67.0, 3.0, 0.3).gains_on(before)
    assert not Standing(60.0, 3.0, 0.3).gains_on(before)
    assert not Standing(75.0, 3.0, 0.5).gains_on(before)
    assert not Standing(70.0, 3.0).gains_on(Standing(70.0, 0.0))
    assert Standing(70.1, 3.0).gains_on(Standing(70.0, 0.0))


def test_a_race_takes_the_weights_that_answer_as_the_teacher_does(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    """With validation pictures of which the inherited weights are said to have all right, accuracy takes none."""
    subnet = resnet_net.smallest()
    taught = replace(config, rounds=(Round(1, epochs=2),), teacher="original", judge="divergence")
    contests: Contests = {"budget_01": [subnet]}

    def raced(judge: str, inherited: float) -> Polished:
        settings, folder = replace(taught, judge=judge), tmp_path / f"{judge}{inherited}"
        return polish(resnet_net, resnet_net, tiny, contests, {subnet.id: inherited}, settings, folder)[0]["budget_01"]

    assert raced("accuracy", 100.0).weights is None
    found = raced("divergence", 100.0)
    assert found.weights is not None
    assert found.polished is not None


def test_a_joint_training_before_the_race_is_judged_by_the_teachers_answers_as_well(
    resnet_net: autotailor.SuperNet, contests: Contests, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    inherited = {subnet.id: 10.0 for subnet in contests["budget_02"]}
    taught = replace(config, rounds=(Round(3, epochs=1),), lr=1e-30, teacher="original", judge="divergence")
    joint = FinetuneConfig(
        epochs=6, batch_size=16, subnets=1, strategy="uniform", lr=2e-2, sort=False,
        calibration=config.calibration, distillation=DistillationConfig(weight=0.0),
    )  # fmt: skip
    table = polish(resnet_net, resnet_net, tiny, contests, inherited, taught, tmp_path, joint=joint)[1]
    assert set(table["round"]) == {0, 1}
    assert table[["divergence_before", "divergence"]].notna().all(axis=None)


def test_of_the_most_accurate_candidates_the_one_that_answers_as_the_teacher_does_is_trained(
    resnet_net: autotailor.SuperNet, tiny: DataSplits, config: PolishConfig, tmp_path: Path
) -> None:
    """One modification of the largest SubNet against the smallest, which is said to have a point more right."""
    variable = next(iter(resnet_net.space))
    other = next(choice for index, choice in enumerate(variable.choices) if index != variable.default)
    near = resnet_net.largest().transform(Modification(variable.name, other))
    contests: Contests = {"budget_01": [far := resnet_net.smallest(), near]}
    settings = replace(config, rounds=(Round(1, epochs=1),), teacher="original")
    said = {far.id: 51.0, near.id: 50.0}
    for judge, best in (("accuracy", far), ("divergence", near)):
        config_of = replace(settings, judge=judge)
        table = polish(resnet_net, resnet_net, tiny, contests, said, config_of, tmp_path / judge)[1]
        assert table["subnet"].tolist() == [best.id]
