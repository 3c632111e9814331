"""What the processes of a training decide together: memory, gradients, numbers that must be the same."""

from typing import Any

import torch
from torch import nn

import team_work
import together
from autotailor.compute.placement import CPU
from autotailor.finetuning.training.processes.group import Group
from autotailor.finetuning.training.processes.team import Agreed, Team


def test_a_process_alone_agrees_with_itself() -> None:
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    team, before = Team(Group(), layer, CPU), layer.weight.grad
    assert team.agree(0.5, 15) == Agreed(0.5, 15)
    assert team.agree(None, 15).loss is None
    team.add_gradients()
    assert layer.weight.grad is before
    assert team.signal(2) == 2
    team.check_same("steps", [1, 2], "no remedy")


def test_losses_signals_and_gradients_of_all_processes_count() -> None:
    first, second = together.results(team_work.agreed)
    assert first == second
    assert first["agreed"] == Agreed(loss=1.5, signal=15)
    assert first["gradients"] == [[3.0] * 4, None]
    assert "gradients of different parameters: [4.0, 6.0]" in first["parameters"]
    assert "process 1 has steps [1], and process 0 has [0]; look" in first["same"]


def test_where_memory_is_too_small_in_one_process_all_halve_their_micro_batches() -> None:
    expected, *_ = team_work.halved(1, most=100)
    found: list[Any] = together.results(team_work.halved, 2, 3)
    for gradients, sizes, said in found:
        torch.testing.assert_close(gradients, expected, rtol=1e-4, atol=1e-6)
        assert sizes == 2  # of the four images of a process, which has memory for three
        assert "memory is too small for 4 images in one forward pass" in said
