"""Forward passes that stop at a position and go on there."""

from __future__ import annotations

import numpy as np
import torch

import autotailor
from autotailor.ir.space.subnet import sample_distinct
from autotailor.ir.space.variable import Modification


@torch.no_grad()
def test_a_pass_goes_on_from_the_live_tensors_at_any_position(any_net: autotailor.SuperNet) -> None:
    module, random = any_net.module(logits=True).eval(), np.random.default_rng(0)
    for subnet in sample_distinct(any_net.space, 3, random):
        module.activate(subnet)
        schedule = module.schedule
        side = any_net.shapes(subnet)[any_net.graph.input][-1]
        images = torch.randn(2, 3, side, side)
        expected, end = module(images), len(schedule.nodes)
        for position in random.choice(end + 1, 6, replace=False):
            values = {schedule.source: images}
            module.advance(values, 0, position)
            assert set(values) >= set(schedule.live[position])
            kept = {name: values[name] for name in schedule.live[position]}
            module.advance(kept, position, end)
            assert torch.equal(module.logits(kept), expected)


def test_a_held_tensor_stays_behind_its_last_reader(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().eval()
    schedule = module.schedule
    dropped = schedule.last[2][0]
    for hold in ((), (dropped,)):
        values = {schedule.source: torch.randn(1, 3, 32, 32)}
        module.advance(values, 0, 3, hold)
        assert (dropped in values) == bool(hold)


def test_a_prepared_subnet_runs_without_changing_the_active_one(resnet_net: autotailor.SuperNet) -> None:
    module, images = resnet_net.module().eval(), torch.randn(2, 3, 32, 32)
    small = resnet_net.largest().transform(Modification("stage1.depth", 1))
    with torch.no_grad():
        expected = module.activate(small)(images)
        module.activate(resnet_net.largest())
        prepared = module.prepare(small)
        assert module.active == resnet_net.largest()
        assert torch.equal(module.use(prepared)(images), expected)
    assert module.active == small
