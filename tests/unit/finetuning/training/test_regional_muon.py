"""Muon restricted to regions, against timm's Muon on the whole weight and on the region by itself."""

from __future__ import annotations

import copy

import pytest
import torch
from timm.optim.muon import Muon
from timm.optim.nadamw import NAdamW
from torch import nn

from autotailor.finetuning.training import regional_muon
from autotailor.finetuning.training.optimizers import make_optimizer
from autotailor.finetuning.training.regional_muon import MOMENTUM, RegionalMuon, by_method, orthogonal
from autotailor.ir.execution.weight_plan import Region, inside
from regions import outside

SHAPE = (16, 8, 3, 3)
REGION: Region = ((0, 8), (2, 8), (0, 3), (1, 3))
WHOLE: Region = tuple((0, size) for size in SHAPE)
OPTIONS = {"lr": 0.1, "weight_decay": 0.2, "nesterov": True}


@pytest.fixture
def like_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions are computed in bfloat16, whatever this processor is good at."""
    monkeypatch.setattr(regional_muon, "resolve", lambda precision, kind: "bf16")


def gradient(seed: int, region: Region = WHOLE) -> torch.Tensor:
    """Zeros outside of a region."""
    found = torch.zeros(SHAPE)
    inside(found, region).copy_(inside(torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed)), region))
    return found


def made() -> tuple[nn.Parameter, RegionalMuon]:
    parameter = nn.Parameter(torch.randn(SHAPE, generator=torch.Generator().manual_seed(9)))
    return parameter, RegionalMuon(list(by_method([{"params": [parameter], "weight_decay": 0.2}])), 0.1)


def step(parameter: nn.Parameter, optimizer: RegionalMuon, seed: int, region: Region) -> None:
    parameter.grad = gradient(seed, region)
    with optimizer.restricted({parameter: region}):
        optimizer.step()


@pytest.mark.usefixtures("like_timm")
def test_on_whole_weights_it_is_timms_muon() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=8), nn.Conv2d(8, 2, 1), nn.Linear(64, 48))
    other = copy.deepcopy(module)
    ours, theirs = make_optimizer(module, "muon", 0.1, 0.2), Muon(other.parameters(), **OPTIONS)
    theirs.param_groups[0]["params"] = [parameter for parameter in other.parameters() if parameter.ndim > 1]
    theirs.add_param_group({"params": [p for p in other.parameters() if p.ndim == 1], "weight_decay": 0.0})
    for _ in range(3):
        for one, two in zip(module.parameters(), other.parameters(), strict=True):
            one.grad = torch.randn_like(one)
            two.grad = one.grad.clone()
        ours.step()
        theirs.step()
    assert all(torch.equal(one, two) for one, two in zip(module.parameters(), other.parameters(), strict=True))


@pytest.mark.usefixtures("like_timm")
def test_a_step_on_a_region_is_that_of_the_region_alone_and_momentum_decays_outside_of_it() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    before, momentum = parameter.detach().clone(), ours.state[parameter]["momentum"].clone()

    alone = nn.Parameter(inside(before, REGION).clone())
    theirs = Muon([{"params": [alone]}], **OPTIONS)
    alone.grad = torch.zeros_like(alone)
    theirs.step()  # makes the moments
    with torch.no_grad():
        alone.copy_(inside(before, REGION))
    theirs.state[alone]["momentum_buffer"].copy_(inside(momentum, REGION))
    alone.grad = inside(gradient(1, REGION), REGION).clone()
    theirs.step()

    step(parameter, ours, 1, REGION)
    torch.testing.assert_close(inside(parameter.detach(), REGION), alone.detach(), rtol=0, atol=1e-6)
    after = ours.state[parameter]["momentum"]
    torch.testing.assert_close(inside(after, REGION), theirs.state[alone]["momentum_buffer"])
    for now, then, weight, was in zip(
        *(outside(tensor, REGION) for tensor in (after, momentum, parameter.detach(), before)), strict=True
    ):
        torch.testing.assert_close(now, MOMENTUM * then)
        assert torch.equal(weight, was)


@pytest.mark.parametrize("shape", [(8, 72), (72, 8), (128, 128)])
@pytest.mark.parametrize("resolved", ["fp32", "bf16"])
def test_directions_are_near_the_polar_factor_in_both_precisions(
    shape: tuple[int, int], resolved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newton-Schulz with these coefficients gives singular values near 1; the SVD is the reference."""
    monkeypatch.setattr(regional_muon, "resolve", lambda precision, kind: resolved)
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = orthogonal(matrix)
    assert found.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[resolved]
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(found.float().flatten(), (left @ right).flatten(), dim=0) > 0.97
    largest = torch.linalg.svdvals(found.float()).max()
    assert 0.9 < largest < 1.3


def test_a_weights_first_step_makes_momentum_of_the_whole_weight() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, REGION)
    assert ours.state[parameter]["momentum"].shape == SHAPE
    assert all(bool((part == 0).all()) for part in outside(ours.state[parameter]["momentum"], REGION))


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


def test_a_failure_leaves_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    parameter, ours = made()

    def fail(self: NAdamW, closure: object = None) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(NAdamW, "step", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        step(parameter, ours, 1, REGION)
    assert [group["params"] for group in ours.param_groups] == [[parameter]]


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
    monkeypatch.setattr("autotailor.finetuning.training.regional_muon.LARGEST_SIDE", 8)
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


def test_a_step_on_an_empty_region_changes_nothing() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    before = parameter.detach().clone()
    step(parameter, ours, 1, ((0, 0), *WHOLE[1:]))
    assert torch.equal(parameter, before)


def test_a_copy_takes_the_same_steps() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    other, theirs = copy.deepcopy((parameter, ours))
    for one, optimizer in ((parameter, ours), (other, theirs)):
        step(one, optimizer, 1, REGION)
    assert torch.equal(parameter, other)
