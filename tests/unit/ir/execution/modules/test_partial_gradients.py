"""Gradients of parts of weights: their sums are those of whole weights, and steps on their leaves move the weights."""

import pytest
import torch
from torch import nn

from autotailor.ir.execution.modules.partial_gradients import PartialGradients
from autotailor.ir.execution.weight_plan import Runs, Selection, Stretch, WeightPlan, take_tensor, view
from regions import outside

SHAPE = (12, 6)
PLANS: tuple[WeightPlan, ...] = (
    (Stretch(0, 6), None),
    (Stretch(4, 6), Stretch(2, 3)),
    (Runs(0, 2, 3, 4, 3), Stretch(0, 3)),
    (None, Selection(torch.tensor([1, 4]).numpy())),
    (None, None),
)


@pytest.fixture
def weight() -> nn.Parameter:
    torch.manual_seed(0)
    return nn.Parameter(torch.randn(SHAPE))


def added(weight: nn.Parameter, *plans: WeightPlan) -> tuple[PartialGradients, torch.Tensor]:
    """The gradients of parts, and the gradient of the whole weight by autograd."""
    found, expected = PartialGradients(), torch.zeros(SHAPE)
    for plan in plans:
        taken = take_tensor(weight, plan)
        value = torch.randn_like(taken)
        expected += torch.autograd.grad(taken, weight, value)[0]
        found.add(weight, plan, value)
    return found, expected


@pytest.mark.parametrize("first", PLANS)
@pytest.mark.parametrize("second", PLANS)
def test_sums_are_those_of_whole_weights(weight: nn.Parameter, first: WeightPlan, second: WeightPlan) -> None:
    found, expected = added(weight, first, second)
    (gradient,) = found
    assert gradient.weight is weight
    found.hand_over()
    assert list(found) == []
    torch.testing.assert_close(weight.grad, expected)


@pytest.mark.parametrize("plan", PLANS)
def test_a_step_on_a_leaf_moves_its_region_of_the_weight(weight: nn.Parameter, plan: WeightPlan) -> None:
    (gradient,), expected = added(weight, plan)
    before, leaf = weight.detach().clone(), gradient.leaf()
    assert (leaf is weight) == gradient.is_whole
    torch.optim.SGD([leaf], lr=0.5).step()
    torch.testing.assert_close(weight.detach(), before - 0.5 * expected)
    assert torch.equal(outside(weight.detach(), gradient.region), outside(before, gradient.region))
    assert leaf.shape == view(before, gradient.region).shape


def test_what_is_cleared_is_forgotten(weight: nn.Parameter) -> None:
    found, _ = added(weight, PLANS[0])
    found.clear()
    found.hand_over()
    assert weight.grad is None
    assert list(found) == []


@pytest.mark.parametrize("plan", [(None, None, None, None), (Stretch(0, 3), None, None, None)])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_a_whole_gradient_lies_in_memory_as_its_weight_does(plan: WeightPlan, layout: torch.memory_format) -> None:
    """PyTorch's fused optimizers read both from end to end. A convolution's gradient may lie otherwise."""
    weight = nn.Parameter(torch.randn(4, 5, 3, 3))
    value = torch.randn_like(take_tensor(weight, plan)).to(memory_format=layout)
    found = PartialGradients()
    found.add(weight, plan, value)
    found.hand_over()
    assert weight.grad.stride() == weight.stride()
    torch.testing.assert_close(take_tensor(weight.grad, plan), value, rtol=0, atol=0)
