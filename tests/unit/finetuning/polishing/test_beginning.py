"""A SubNet stops where it is worse than it began beyond chance, no longer falls, and its training is not young."""

from __future__ import annotations

from dataclasses import replace

import pytest

import autotailor
import tiny_data
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.beginning import Beginning
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.task import find

RISING, FALLING = [0.3, 0.4, 0.5, 0.6], [0.5, 0.45, 0.2, 0.15]
NOISE, LATE = [0.01, 0.02, 0.01, 0.02], [-0.1, -0.1, 0.0, 0.3]


@pytest.mark.parametrize(
    ("changes", "gain", "stops_after", "is_lost"),
    [
        (RISING, 0.0, 3, True),
        (FALLING, -1.0, None, True),
        (NOISE, -1.0, None, False),
        (LATE, -1.0, None, True),
        (RISING, 1.0, None, False),
    ],
    ids=["rising", "falling", "noise", "late", "surer and better"],
)
def test_who_stops_and_who_is_lost(
    changes: list[float],
    gain: float,
    stops_after: int | None,
    is_lost: bool,
    resnet_net: autotailor.SuperNet,
    config: PolishConfig,
) -> None:
    student = GraphModule(resnet_net.slice(resnet_net.smallest()), logits=True)
    config = replace(config, checks=4, epochs=4)
    step = Lockstep([student], [24], Teacher(student, 24), config, find("classification"))
    beginning = Beginning([student], ["mine"], [24], tiny_data.splits(), config, step)
    watch, stopped = beginning.watch, None
    for epoch, change in enumerate(changes):
        watch.record({"change_0": change, "error_0": 0.05, "gain_0": gain}, epoch)
        if step.stopped and stopped is None:
            stopped = epoch + 1
    step.close()
    assert stopped == stops_after
    assert watch.is_over() == (stops_after is not None)
    assert beginning.lost == ({0} if is_lost else set())
