"""The task of outputs without labels: how near a network is to the original one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import autotailor
from autotailor import accuracy, task
from autotailor.data.splits import DataSplits, TensorEvaluationSet
from autotailor.task.interface import Lesson
from autotailor.task.tasks.outputs import GRID, Outputs
from returning import UNet

RANDOM = torch.Generator().manual_seed(0)
MAPS = torch.randn(4, 3, 8, 8, generator=RANDOM)
ROWS = 5 + 2 * torch.randn(4, 10, generator=RANDOM)
JUDGE = Outputs()


def judged(outputs: Any, wanted: Any) -> list[float]:
    return [round(value, 4) for value in JUDGE.judge(outputs, JUDGE.answers(wanted)).values.tolist()]


def test_a_value_is_one_less_the_distance_over_the_variance_as_a_mean_over_outputs() -> None:
    whole, mean = (MAPS, ROWS), ROWS.mean(1, keepdim=True).expand(-1, 10)
    offset = torch.arange(3).reshape(1, 3, 1, 1) * 100.0
    half = ROWS + 0.5 * (mean - ROWS)
    assert judged(whole, whole) == [1.0] * 4
    assert judged((MAPS, mean), whole) == [0.5] * 4
    assert judged((MAPS, half), whole) == [0.875] * 4
    assert judged((MAPS, ROWS + 1e6), whole) == [0.5] * 4
    assert judged(mean, ROWS) == [0.0] * 4
    assert judged(MAPS.roll(1, 3) / 8 + offset, MAPS + offset) == judged(MAPS.roll(1, 3) / 8, MAPS)
    assert judged((MAPS[:, :, :1, :1] + offset) * 1.01, MAPS[:, :, :1, :1] + offset)[0] > 0.99
    assert JUDGE.agree(half, ROWS).tolist() == pytest.approx([0.75] * 4)


def test_what_is_no_number_has_no_value_and_a_finite_loss() -> None:
    broken = MAPS.clone()
    broken[1, 0, 0, 0] = float("nan")
    found = JUDGE.judge((broken, ROWS), JUDGE.answers((MAPS, ROWS)))
    assert found.values.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert found.losses.isfinite().all()


def test_maps_of_other_resolutions_are_compared_at_the_same_places() -> None:
    axis = (torch.arange(64) + 0.5) / 64
    large = (axis[:, None] + 2 * axis[None, :]).expand(2, 3, 64, 64)
    small = functional.avg_pool2d(large, 2)
    assert min(judged(small, large)) > 0.99
    assert JUDGE.answers(large).shape == (2, 1, 3, GRID * GRID)
    assert JUDGE.loss(small, torch.empty(0), large, Lesson()).item() < 0.01


def test_the_loss_is_the_distance_from_the_teacher_and_has_a_gradient() -> None:
    ours = ROWS.clone().requires_grad_()
    mean = ROWS.mean()
    assert JUDGE.loss((MAPS, ours), torch.empty(0), (MAPS, ROWS), Lesson()).item() == 0.0
    loss = JUDGE.loss((MAPS, 0 * ours + mean), torch.empty(0), (MAPS, ROWS), Lesson())
    assert loss.item() == pytest.approx(0.5)
    JUDGE.loss((MAPS, ours + 1), torch.empty(0), (MAPS, ROWS), Lesson()).backward()
    assert ours.grad is not None
    assert (ours.grad > 0).all()


def test_chance_is_the_mean_over_pictures() -> None:
    targets = np.asarray(JUDGE.answers((MAPS, ROWS)))
    often = targets.mean(axis=0, keepdims=True).repeat(4, axis=0)
    guess = (torch.from_numpy(often[:, 0]).reshape(4, 3, GRID, GRID), torch.from_numpy(often[:, 1, 0, :10]))
    wanted = float(JUDGE.judge(guess, torch.from_numpy(targets)).values.mean())
    assert JUDGE.chance(targets) == pytest.approx(wanted, abs=1e-5)
    assert 0.1 < wanted < 0.5


def test_pictures_get_the_original_networks_outputs_as_targets() -> None:
    torch.manual_seed(0)
    network = UNet((8, 16)).eval()
    network.last.bias.data.zero_()  # which would be most of what a network with random weights returns
    net = autotailor.compile(network, resolution=16)
    images = TensorEvaluationSet(torch.randn(6, 3, 16, 16, generator=RANDOM), [-1] * 6, range(6), "outputs")
    splits: Any = DataSplits("maps", 0, 16, None, images, images, (0,) * 3, (1,) * 3, labelled=False)  # type: ignore[arg-type]
    known = accuracy.with_labels(splits, net)
    assert (task.of(known).name, task.score_of(known).name) == ("outputs", "fidelity")
    module = net.module().eval()
    values = {
        subnet: accuracy.evaluate(module, subnet, known.validation, None).values.mean()
        for subnet in (net.largest(), net.smallest())
    }
    assert values[net.largest()] == pytest.approx(1.0, abs=1e-3)
    assert 0 <= values[net.smallest()] < 0.99
    part = known.validation.part(np.array([1, 3]))
    assert accuracy.evaluate(module, net.largest(), part, None).values.min() > 0.999


def test_labels_are_of_no_use() -> None:
    with pytest.raises(task.TaskError, match=r"data\.task is outputs, which compares .* set data\.labels to false"):
        task.of_section({"task": "outputs"})
    assert task.of_section({"task": "outputs", "labels": False}).name == "outputs"
