"""Slices with gradients of their own: the same gradients as through the whole weights, in the shapes of the slices."""

import random

import pytest
import torch

import autotailor
import networks
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet

Gradients = dict[str, torch.Tensor | None]


@pytest.fixture(scope="module")
def transformer_net() -> autotailor.SuperNet:
    return autotailor.compile(networks.make("transformer"), networks.SPACES["transformer"], resolution=32)


def image(net: autotailor.SuperNet, subnet: SubNet, count: int) -> torch.Tensor:
    shape = net.shapes(subnet)[net.graph.input][1:]
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))


def loss(module: ElasticModule, net: autotailor.SuperNet, subnet: SubNet, images: int = 2) -> torch.Tensor:
    logits: torch.Tensor = module.activate(subnet)(image(net, subnet, images))
    return logits.square().mean()


def gradients(module: ElasticModule) -> Gradients:
    return {name: weight.grad for name, weight in module.named_parameters()}


def by_slices(net: autotailor.SuperNet, *subnets: SubNet, images: int = 2) -> Gradients:
    module = net.module(logits=True).train()
    for subnet in subnets:
        with module.slices() as slices:
            found = slices.gradients(loss(module, net, subnet, images))
        module.add_gradients(found)
    module.partial_gradients.hand_over()
    return gradients(module)


def through_weights(net: autotailor.SuperNet, *subnets: SubNet, images: int = 2) -> Gradients:
    module = net.module(logits=True).train()
    for subnet in subnets:
        loss(module, net, subnet, images).backward()
    return gradients(module)


def test_the_gradients_of_several_subnets_add_up_as_through_the_weights(any_net: autotailor.SuperNet) -> None:
    subnets = [any_net.smallest(), any_net.sample(random.Random(0)), any_net.largest(), any_net.smallest()]
    found, expected = by_slices(any_net, *subnets), through_weights(any_net, *subnets)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


def test_gradients_share_no_memory_where_autograd_gives_two_weights_the_same_one(
    transformer_net: autotailor.SuperNet,
) -> None:
    """With one image, the gradient of the class token is a view of that of the positions."""
    module = transformer_net.module(logits=True).train()
    with module.slices() as slices:
        found = slices.gradients(loss(module, transformer_net, transformer_net.largest(), 1))
    memory = [gradient.value.untyped_storage().data_ptr() for gradient in found]
    assert len(set(memory)) == len(memory)
    for subnet in (transformer_net.smallest(), transformer_net.largest()):
        twice, expected = (f(transformer_net, subnet, subnet, images=1) for f in (by_slices, through_weights))
        for name, gradient in expected.items():
            torch.testing.assert_close(twice[name], gradient, rtol=1e-4, atol=1e-6)


def test_gradients_are_of_the_type_of_their_weights_in_half_precision(transformer_net: autotailor.SuperNet) -> None:
    with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        found = by_slices(transformer_net, transformer_net.smallest())
    expected = through_weights(transformer_net, transformer_net.smallest())
    for name, gradient in found.items():
        assert gradient is None or gradient.dtype == torch.float32
        assert (gradient is None) == (expected[name] is None)


def test_weights_that_a_subnet_does_not_use_get_no_gradient(resnet_net: autotailor.SuperNet) -> None:
    found, expected = (f(resnet_net, resnet_net.smallest()) for f in (by_slices, through_weights))
    unused = {name for name, gradient in expected.items() if gradient is None}
    assert unused
    assert {name for name, gradient in found.items() if gradient is None} == unused


def test_a_gradient_has_the_shape_of_its_slice(resnet_net: autotailor.SuperNet) -> None:
    module, subnet = resnet_net.module(logits=True).train(), resnet_net.smallest()
    with module.slices() as slices:
        found = slices.gradients(loss(module, resnet_net, subnet))
    sliced = resnet_net.slice(subnet).weights
    assert {g.weight: tuple(g.value.shape) for g in found} == {g.weight: sliced[g.weight].shape for g in found}
    assert all(parameter.grad is None for parameter in module.parameters())


def test_slices_follow_the_weights_from_step_to_step(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module(logits=True).train()
    with module.slices():
        before = loss(module, resnet_net, resnet_net.smallest())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(0.5)
    with module.slices():
        after = loss(module, resnet_net, resnet_net.smallest())
    torch.testing.assert_close(after, loss(module, resnet_net, resnet_net.smallest()))
    assert not torch.isclose(before, after)


def test_no_other_subnet_is_activated_between_slices(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module(logits=True)
    with module.slices():
        loss(module, resnet_net, resnet_net.smallest())
        with pytest.raises(GraphError, match="before its forward pass"):
            module.activate(resnet_net.largest())
    module.activate(resnet_net.largest())
