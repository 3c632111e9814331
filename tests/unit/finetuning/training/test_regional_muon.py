"""Muon restricted to regions, against timm's Muon on the whole weight and on the region by itself."""

from __future__ import annotations

import copy

import pytest
import torch
from timm.optim.muon import Muon
from torch import nn

from autotailor.finetuning.training.optimizers import make_optimizer
from autotailor.finetuning.training.regional_muon import MOMENTUM, RegionalMuon
from autotailor.ir.execution.weight_plan import Region, inside, outside

SHAPE = (16, 8, 3, 3)
REGION: Region = ((0, 8), (2, 8), (0, 3), (1, 3))
WHOLE: Region = tuple((0, size) for size in SHAPE)
OPTIONS = {"lr": 0.1, "weight_decay": 0.2, "nesterov": True}


def gradient(seed: int, region: Region = WHOLE) -> torch.Tensor:
    """Zeros outside of a region."""
    found = torch.zeros(SHAPE)
    inside(found, region).copy_(inside(torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed)), region))
    return found


def made() -> tuple[nn.Parameter, RegionalMuon]:
    parameter = nn.Parameter(torch.randn(SHAPE, generator=torch.Generator().manual_seed(9)))
    return parameter, RegionalMuon([{"params": [parameter]}], **OPTIONS)


def step(parameter: nn.Parameter, optimizer: RegionalMuon, seed: int, region: Region) -> None:
    parameter.grad = gradient(seed, region)
    with optimizer.restricted({parameter: region}):
        optimizer.step()


def test_on_whole_weights_it_is_timms_muon() -> None:
    parameter, ours = made()
    other = nn.Parameter(parameter.detach().clone())
    theirs = Muon([{"params": [other]}], **OPTIONS)
    for seed in range(3):
        step(parameter, ours, seed, WHOLE)
        other.grad = gradient(seed)
        theirs.step()
    assert torch.equal(parameter, other)


def test_a_step_on_a_region_is_that_of_the_region_alone_and_momentum_decays_outside_of_it() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    before, momentum = parameter.detach().clone(), ours.state[parameter][MOMENTUM].clone()

    alone = nn.Parameter(inside(before, REGION).clone())
    theirs = Muon([{"params": [alone]}], **OPTIONS)
    alone.grad = torch.zeros_like(alone)
    theirs.step()  # makes the moments
    with torch.no_grad():
        alone.copy_(inside(before, REGION))
    theirs.state[alone][MOMENTUM].copy_(inside(momentum, REGION))
    alone.grad = inside(gradient(1, REGION), REGION).clone()
    theirs.step()

    step(parameter, ours, 1, REGION)
    torch.testing.assert_close(inside(parameter.detach(), REGION), alone.detach(), rtol=0, atol=1e-6)
    after = ours.state[parameter][MOMENTUM]
    torch.testing.assert_close(inside(after, REGION), theirs.state[alone][MOMENTUM])
    factor = ours.param_groups[0]["momentum"]
    for now, then, weight, was in zip(
        *(outside(tensor, REGION) for tensor in (after, momentum, parameter.detach(), before)), strict=True
    ):
        torch.testing.assert_close(now, factor * then)
        assert torch.equal(weight, was)
    assert after.shape == parameter.shape == SHAPE
    assert parameter.grad is not None
    assert torch.equal(parameter.grad, gradient(1, REGION))


def test_a_weights_first_step_makes_moments_of_the_whole_weight() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, REGION)
    assert ours.state[parameter][MOMENTUM].shape == SHAPE


def test_the_restriction_ends_with_its_context() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    step(parameter, ours, 1, REGION)
    before = parameter.detach().clone()
    parameter.grad = gradient(2)
    ours.step()
    assert all(
        bool((now != was).any()) for now, was in zip(*(outside(t, REGION) for t in (parameter, before)), strict=True)
    )


def test_what_fails_in_a_step_leaves_whole_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)

    def fail(self: Muon, closure: object = None) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Muon, "step", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        step(parameter, ours, 1, REGION)
    assert parameter.shape == parameter.grad.shape == ours.state[parameter][MOMENTUM].shape == SHAPE


def test_a_closure_computes_gradients_of_whole_weights() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)

    def loss() -> float:
        found = parameter.square().sum()
        ours.zero_grad()
        found.backward()
        return float(found.detach())

    expected = float(parameter.detach().square().sum())
    with ours.restricted({parameter: WHOLE}):
        assert ours.step(loss) == pytest.approx(expected)


def test_vectors_and_large_matrices_are_stepped_on_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.finetuning.training.optimizers.LARGEST_SIDE", 8)
    module = nn.Linear(16, 16)
    optimizer = make_optimizer(module, "muon", 0.1, 0.2)
    assert isinstance(optimizer, RegionalMuon)
    for _ in range(2):
        before = [parameter.detach().clone() for parameter in module.parameters()]
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        with optimizer.restricted({module.weight: ((0, 4), (0, 4)), module.bias: ((0, 4),)}):
            optimizer.step()
        assert all(bool((now != was).all()) for now, was in zip(module.parameters(), before, strict=True))


def test_an_empty_region_stands_for_the_whole_weight() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    parameter.grad = gradient(1)
    with ours.restricted({parameter: ((0, 0), *WHOLE[1:])}):
        ours.step()
    assert parameter.shape == SHAPE


def test_a_copy_takes_the_same_steps() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    other, theirs = copy.deepcopy((parameter, ours))
    for one, optimizer in ((parameter, ours), (other, theirs)):
        step(one, optimizer, 1, REGION)
    assert torch.equal(parameter, other)


def test_a_region_that_is_none_of_a_weight_leaves_all_weights_whole() -> None:
    parameter, ours = made()
    second = nn.Parameter(torch.ones(SHAPE))
    ours.add_param_group({"params": [second]})
    parameter.grad, second.grad = gradient(0), gradient(1)
    ours.step()
    with ours.restricted({parameter: REGION, second: ((0, 8), (2, 99), (0, 3), (1, 3))}), pytest.raises(RuntimeError):
        ours.step()
    assert parameter.shape == second.shape == ours.state[parameter][MOMENTUM].shape == SHAPE
