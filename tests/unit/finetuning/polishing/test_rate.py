"""The range test takes the rate that lowers the loss most, and leaves the SubNets as they are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest
from torch import nn

import autotailor
import tiny_data
from autotailor.finetuning import DistillationConfig
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.polishing.rate import choose_rate
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.task import find
from training import equal


@pytest.mark.parametrize(("rates", "found"), [((1e-6, 1e-3, 1e3), 1e-3), ((1e-3, 1e-6), 1e-3), ((1e3, 1e4), 1e3)])
def test_the_rate_that_helps_most_is_taken_and_the_lowest_where_none_helps(
    rates: tuple[float, ...], found: float, plain_net: autotailor.SuperNet, config: PolishConfig
) -> None:
    given = replace(
        config, rates=rates, optimizer="adamw", frozen=True, features=1.0, distillation=DistillationConfig(weight=1.0)
    )
    teacher = Teacher(plain_net.build(plain_net.largest(), logits=True), 32)
    students: list[nn.Module] = [GraphModule(plain_net.slice(plain_net.smallest()), logits=True)]
    before = copy.deepcopy(students[0].state_dict())

    def lockstep(modules: Sequence[nn.Module], resolutions: Sequence[int], config: PolishConfig) -> Lockstep:
        return Lockstep(modules, resolutions, teacher, config, find("classification"))

    assert choose_rate(students, lockstep, [24], given, tiny_data.TinyStream(240), None) == found
    assert equal(before, students[0].state_dict())
