"""The module that executes a graph, and the SuperNet whose operators slice shared weights."""

import pytest
import torch

import autotailor
import networks
from acceptance import checks


def test_gradients_reach_embeddings_of_a_smaller_image(transformer_net: autotailor.SuperNet) -> None:
    module = transformer_net.module()
    module.activate(autotailor.SubNet.from_assignment(transformer_net.space, {"resolution": 16}))
    module(torch.randn(2, 3, 16, 16)).square().mean().backward()
    positions = next(p for p in module.parameters() if p.shape == (1, 17, 24))
    assert positions.grad is not None
    assert bool((positions.grad.abs().sum(-1) > 0).all())


@pytest.mark.parametrize("training", [False, True])
def test_batches_pass_through_reshapes(transformer_net: autotailor.SuperNet, training: bool) -> None:
    x = torch.randn(3, 3, 24, 24)
    subnet = autotailor.SubNet.from_assignment(
        transformer_net.space, {"resolution": 24, "block2.heads": 1, "stage1.depth": 1}
    )
    module = transformer_net.module().train(training).activate(subnet)
    with torch.no_grad():
        alone = torch.cat([transformer_net.build(subnet)(image[None]) for image in x])
        torch.testing.assert_close(module(x), alone, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(transformer_net.build(subnet)(x), alone, atol=1e-5, rtol=1e-4)


def test_a_shuffled_half_stays_static_and_exact() -> None:
    net = autotailor.compile(networks.make("shuffled"), name="shuffled", resolution=32)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), networks.make("shuffled")(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
@pytest.mark.parametrize("training", [False, True])
def test_torch_compile_takes_a_network_whole(name: str, training: bool) -> None:
    net = autotailor.compile(networks.make(name), networks.SPACES[name], name=name, resolution=32)
    module = net.build(net.largest(), logits=True).train(training)
    whole = torch.compile(module, backend="eager", fullgraph=True)  # raises where Python has to run in between
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(whole(x), module(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
def test_folded_batch_norm_computes_and_learns_the_same(name: str) -> None:
    net = autotailor.compile(networks.make(name), networks.SPACES[name], name=name, resolution=32)
    plain, folded = (net.build(net.largest(), logits=True).eval() for _ in range(2))
    folded.fold()
    x = torch.randn(3, 3, 32, 32)
    for mode in (False, True):
        found, wanted = folded.train(mode)(x), plain.train(mode)(x)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
        if not mode:
            found.square().mean().backward()
            wanted.square().mean().backward()
    for ours, theirs in zip(folded.parameters(), plain.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        if ours.grad is not None and theirs.grad is not None:
            torch.testing.assert_close(
                ours.grad, theirs.grad, atol=1e-5 + 1e-4 * float(theirs.grad.abs().max()), rtol=1e-3
            )


def test_statistics_are_collected_and_used(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().train()
    subnet = resnet_net.smallest()
    x = torch.randn(64, *resnet_net.shapes(subnet)[resnet_net.graph.input][1:])
    module.activate(subnet)
    with torch.no_grad():
        by_batch = module(x)
    with module.collecting() as collector:
        module(x)
    statistics = collector.statistics()
    module.eval().statistics = statistics
    with torch.no_grad():
        by_statistics = module(x)
        built = resnet_net.build(subnet, statistics)(x)
    assert checks.relative(by_statistics.numpy(), by_batch.numpy()) < 0.05  # biased against unbiased variance
    assert checks.relative(built.numpy(), by_statistics.numpy()) < checks.TOLERANCE


def test_absorbing_trained_weights(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    x = torch.randn(8, 3, 32, 32)
    module(x).square().sum().backward()
    optimizer.step()
    absorbed = resnet_net.absorb(module)
    with torch.no_grad():
        expected = module.eval()(x).numpy()
        assert checks.relative(absorbed.build(absorbed.largest())(x).numpy(), expected) < checks.TOLERANCE
        assert checks.relative(resnet_net.build(resnet_net.largest())(x).numpy(), expected) > 1e-2


def test_replicas_share_memory_but_no_parameter(resnet_net: autotailor.SuperNet) -> None:
    """A parameter that two threads compute gradients of makes them wait for each other for ever, once in a while."""
    module = resnet_net.module().train()
    twin = module.replica()
    module.to(memory_format=torch.channels_last)  # moves the weights
    twin.look_at(module)
    pairs = list(zip(module.parameters(), twin.parameters(), strict=True))
    assert pairs
    assert all(a is not b and a.data_ptr() == b.data_ptr() and a.requires_grad == b.requires_grad for a, b in pairs)
    twin(torch.randn(4, 3, 32, 32)).sum().backward()
    assert all(a.grad is None for a, _ in pairs)
    assert any(b.grad is not None for _, b in pairs)


def test_gradients_reach_only_active_channels(resnet_net: autotailor.SuperNet) -> None:
    module = resnet_net.module().train().activate(resnet_net.smallest())
    module(torch.randn(4, 3, 20, 20)).sum().backward()
    stem = next(p for n, p in module.named_parameters() if p.shape == (16, 3, 3, 3))
    assert stem.grad is not None
    assert (stem.grad[8:] == 0).all()
    assert (stem.grad[:8] != 0).any()
