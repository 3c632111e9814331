"""Muon restricted to regions, against timm's Muon on the whole weight and on the region by itself."""

import copy
import functools

import pytest
import torch
from timm.optim import muon
from timm.optim.muon import Muon
from timm.optim.nadamw import NAdamW
from torch import nn

from autotailor.finetuning.training import regional_muon
from autotailor.finetuning.training.optimizers import make_optimizer
from autotailor.finetuning.training.regional_muon import MOMENTUM, RegionalMuon, by_method, orthogonal
from autotailor.ir.execution.modules.partial_gradients import PartialGradients
from autotailor.ir.execution.weight_plan import Region, Runs, Stretch, take_tensor
from regions import outside

SHAPE = (16, 8, 3, 3)
REGION: Region = (Stretch(0, 8), Stretch(2, 6), None, Stretch(1, 2))
RUNS: Region = (Runs(1, 2, 3, 4, 4), None, None, None)  # two channels of each of the first three of four heads
WHOLE: Region = (None,) * len(SHAPE)
OPTIONS = {"lr": 0.1, "weight_decay": 0.2, "nesterov": True}


@pytest.fixture
def like_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions are computed in bfloat16, whatever this processor is good at."""
    monkeypatch.setattr(regional_muon, "resolve", lambda precision, kind: "bf16")


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions are computed in float32, by timm as well, so that rounding does not hide errors."""
    monkeypatch.setattr(regional_muon, "resolve", lambda precision, kind: "fp32")
    exact = functools.partial(muon.zeropower_via_newtonschulz, dtype=torch.float32)
    monkeypatch.setattr(muon, "zeropower_via_newtonschulz", exact)


def gradient(seed: int) -> torch.Tensor:
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))


def given(*entries: tuple[nn.Parameter, Region, torch.Tensor]) -> PartialGradients:
    """The gradients of regions of weights, taken from gradients of the whole weights."""
    found = PartialGradients()
    for parameter, region, whole in entries:
        found.add(parameter, region, take_tensor(whole, region))
    return found


def made() -> tuple[nn.Parameter, RegionalMuon]:
    parameter = nn.Parameter(torch.randn(SHAPE, generator=torch.Generator().manual_seed(9)))
    return parameter, RegionalMuon(list(by_method([{"params": [parameter], "weight_decay": 0.2}])), 0.1)


def step(parameter: nn.Parameter, optimizer: RegionalMuon, seed: int, region: Region) -> None:
    with optimizer.restricted(given((parameter, region, gradient(seed)))):
        optimizer.step()


def momentum_of(optimizer: RegionalMuon, parameter: nn.Parameter) -> torch.Tensor:
    state = optimizer.state[parameter]
    found: torch.Tensor = state["scale"] * state["momentum"]
    return found


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


@pytest.mark.usefixtures("in_float32")
@pytest.mark.parametrize("region", [REGION, RUNS], ids=["stretches", "runs"])
def test_steps_on_a_region_are_those_of_the_region_alone_and_momentum_decays_outside_of_it(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regional_muon, "SMALLEST_SCALE", 0.93)  # the second of three steps brings the scale back to 1
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    before, momentum = parameter.detach().clone(), momentum_of(ours, parameter)

    alone = nn.Parameter(take_tensor(before, region).clone())
    theirs = Muon([{"params": [alone]}], **OPTIONS)
    alone.grad = torch.zeros_like(alone)
    theirs.step()  # makes the moments
    with torch.no_grad():
        alone.copy_(take_tensor(before, region))
    theirs.state[alone]["momentum_buffer"].copy_(take_tensor(momentum, region))
    for seed in (1, 2, 3):
        alone.grad = take_tensor(gradient(seed), region).clone()
        theirs.step()
        step(parameter, ours, seed, region)

    torch.testing.assert_close(take_tensor(parameter.detach(), region), alone.detach(), rtol=0, atol=1e-6)
    after = momentum_of(ours, parameter)
    torch.testing.assert_close(take_tensor(after, region), theirs.state[alone]["momentum_buffer"])
    torch.testing.assert_close(outside(after, region), MOMENTUM**3 * outside(momentum, region))
    assert torch.equal(outside(parameter.detach(), region), outside(before, region))


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
    assert not outside(ours.state[parameter]["momentum"], REGION).any()


def test_a_step_on_a_whole_weight_after_those_on_regions_uses_the_momentum_that_has_decayed() -> None:
    parameter, ours = made()
    for seed, region in enumerate((WHOLE, REGION, RUNS)):
        step(parameter, ours, seed, region)
    momentum = momentum_of(ours, parameter)
    parameter.grad = gradient(3)
    ours.step()
    torch.testing.assert_close(momentum_of(ours, parameter), momentum.lerp(gradient(3), 1 - MOMENTUM))


def test_the_restriction_ends_with_its_context() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    step(parameter, ours, 1, REGION)
    assert [group["params"] for group in ours.param_groups] == [[parameter]]
    before = parameter.detach().clone()
    parameter.grad = gradient(2)
    ours.step()
    assert (outside(parameter.detach(), REGION) != outside(before, REGION)).any()


def test_a_norm_of_the_gradients_is_that_of_the_regions() -> None:
    parameter, ours = made()
    with ours.restricted(given((parameter, REGION, gradient(0)))):
        (leaf,) = ours.param_groups[0]["params"]
        found = nn.utils.clip_grad_norm_([leaf], 1e-3)
        torch.testing.assert_close(found, take_tensor(gradient(0), REGION).norm())
        torch.testing.assert_close(leaf.grad.norm(), torch.tensor(1e-3))


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
    assert ours.step(loss) == pytest.approx(expected)


def test_vectors_and_large_matrices_are_stepped_on_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.finetuning.training.regional_muon.LARGEST_SIDE", 8)
    module = nn.Linear(16, 16)
    optimizer = make_optimizer(module, "muon", 0.1, 0.2)
    assert isinstance(optimizer, RegionalMuon)
    for part in (None, Stretch(0, 4)):
        before = [parameter.detach().clone() for parameter in module.parameters()]
        parts = given(
            (module.weight, (part, part), torch.ones(16, 16)),
            (module.bias, (part,), torch.ones(16)),
        )
        with optimizer.restricted(parts):
            optimizer.step()
        assert all(bool((now != was).all()) for now, was in zip(module.parameters(), before, strict=True))


def test_a_step_on_an_empty_region_changes_nothing() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    before = parameter.detach().clone()
    step(parameter, ours, 1, (Stretch(0, 0), *WHOLE[1:]))
    assert torch.equal(parameter, before)


def test_a_copy_takes_the_same_steps() -> None:
    parameter, ours = made()
    step(parameter, ours, 0, WHOLE)
    other, theirs = copy.deepcopy((parameter, ours))
    for one, optimizer in ((parameter, ours), (other, theirs)):
        step(one, optimizer, 1, REGION)
    assert torch.equal(parameter, other)
