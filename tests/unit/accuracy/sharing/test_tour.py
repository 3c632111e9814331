"""SubNets that share prefixes: the same bits as alone, within the memory limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch.nn import functional

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig, Calibrator
from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.sharing import tour as module_under_test
from autotailor.accuracy.sharing.plan import plan
from autotailor.accuracy.sharing.steps import steps_of
from autotailor.accuracy.sharing.tour import Tour
from autotailor.accuracy.sharing.tree import grow
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.ir.space.variable import Modification
from autotailor.task import find

CALIBRATION = CalibrationConfig(images=48, batch_size=16)


def some_subnets(net: autotailor.SuperNet, count: int = 8) -> list[SubNet]:
    """Single modifications, as for sensitivities, and random SubNets."""
    base = net.largest()
    singles = [base.transform(Modification(v.name, choice)) for v in net.space for choice in v.choices]
    return list(
        dict.fromkeys(
            [*singles[:: max(1, len(singles) // count)], *sample_distinct(net.space, count, np.random.default_rng(0))]
        )
    )


def alone(module: ElasticModule, subnet: SubNet, batches: Sequence[torch.Tensor]) -> tuple[Statistics, torch.Tensor]:
    """Statistics and logits of a SubNet by itself, as evaluation without sharing computes them."""
    statistics = Calibrator(tiny_data.splits(), CALIBRATION).statistics(module, subnet)
    module.activate(subnet).statistics = statistics
    device = torch.device("cpu")
    with torch.no_grad():
        return statistics, torch.cat([module(as_input(images, device, resolution_of(subnet))) for images in batches])


def check_bits(
    net: autotailor.SuperNet, subnets: Sequence[SubNet], memory: int, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Compares statistics, logits and losses with those of each SubNet alone; returns the most bytes that were kept."""
    most, logits = 0, dict[str, list[torch.Tensor]]()
    run = module_under_test._Batch.logits

    def watched(batch, visit, prepared):  # type: ignore[no-untyped-def]
        nonlocal most
        found = run(batch, visit, prepared)
        stores = {t.untyped_storage().data_ptr(): t for kept in batch.kept.values() for t in kept.values()}
        most = max(most, sum(t.untyped_storage().nbytes() for t in stores.values()))
        logits.setdefault(prepared.subnet.id, []).append(found)
        return found

    monkeypatch.setattr(module_under_test._Batch, "logits", watched)
    module, data = net.module().eval(), tiny_data.splits()
    batches = [images for images, _ in data.validation.batches(16)]
    labels = torch.from_numpy(data.validation.labels)
    prepared = [module.prepare(subnet) for subnet in subnets]
    visits = plan(grow([steps_of(net.elastic, each) for each in prepared]), memory, 16)
    tour = Tour(module, prepared, visits)
    statistics = tour.statistics(Calibrator(data, CALIBRATION).images_on(torch.device("cpu")))
    logits.clear()
    outcomes = tour.outcomes(data.validation.batches(16), statistics, find("classification"))
    fresh = net.module().eval()
    for visit, found, own in zip(visits, statistics, outcomes, strict=True):
        for i in visit.subnets:
            expected, numbers = alone(fresh, subnets[i], batches)
            assert list(found) == list(expected)
            assert all(torch.equal(x, y) for name in found for x, y in zip(found[name], expected[name], strict=True))
            assert torch.equal(torch.cat(logits[subnets[visit.subnets[0]].id]), numbers)
            assert own.values.tolist() == (numbers.argmax(1) == labels).tolist()
            losses = [
                functional.cross_entropy(*pair, reduction="none")
                for pair in zip(numbers.split(16), labels.split(16), strict=True)
            ]
            assert own.losses.tobytes() == torch.cat(losses).numpy().tobytes()
    return most


@pytest.mark.parametrize("memory", [0, 300_000, 2**30])
def test_each_subnet_gets_the_bits_that_it_gets_alone(
    any_net: autotailor.SuperNet, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Residual blocks, depthwise convolutions, squeeze and excitation, attention, concatenations, any resolution."""
    kept = check_bits(any_net, some_subnets(any_net), memory, monkeypatch)
    assert kept <= memory
    assert bool(kept) == bool(memory)


def test_views_of_larger_tensors_count_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shuffled network splits its channels, and the half that passes a block is a view of the whole."""
    space = {"width": [0.5, 1.0], "resolution": [24, 32]}
    net = autotailor.compile(networks.make("shuffled"), space, name="shuffled", resolution=32)
    subnets = some_subnets(net)
    tree = grow([steps_of(net.elastic, net.module().prepare(subnet)) for subnet in subnets])
    assert tree.children
    check_bits(net, subnets, 2**30, monkeypatch)
    for memory in (100_000, 500_000):
        assert check_bits(net, subnets, memory, monkeypatch) <= memory


def test_merged_blocks_are_shared_as_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    net = autotailor.compile(networks.make("resnet"), {"alternatives": {"merged": [1, 2]}}, resolution=32)
    check_bits(net, [net.largest(), net.smallest(), *some_subnets(net)], 2**30, monkeypatch)


def test_what_subnets_share_is_computed_once(resnet_net: autotailor.SuperNet) -> None:
    base, space = resnet_net.largest(), resnet_net.space
    last = space.variables[-1]
    subnets = [base.transform(Modification(last.name, choice)) for choice in last.choices]
    module = resnet_net.module().eval()
    ran: list[str] = []
    run = module._run

    def counted(node, values):  # type: ignore[no-untyped-def]
        ran.append(node.name)
        return run(node, values)

    module._run = counted  # type: ignore[method-assign]
    prepared = [module.prepare(subnet) for subnet in subnets]
    steps = [steps_of(resnet_net.elastic, each) for each in prepared]
    tour = Tour(module, prepared, plan(grow(steps), 2**30, 8))
    tour.statistics([torch.randn(8, 3, 32, 32)])
    shared = next(i for i, keys in enumerate(zip(*(each.keys for each in steps), strict=True)) if len(set(keys)) > 1)
    assert shared > 20
    assert len(ran) == shared + sum(len(each.keys) - shared for each in steps)


def test_images_are_resized_once_for_each_resolution(
    resnet_net: autotailor.SuperNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides: list[int] = []

    def counted(images: torch.Tensor, device: torch.device, resolution: int) -> torch.Tensor:
        sides.append(resolution)
        return as_input(images, device, resolution)

    monkeypatch.setattr(module_under_test, "as_input", counted)
    module = resnet_net.module().eval()
    prepared = [module.prepare(subnet) for subnet in sample_distinct(resnet_net.space, 12, np.random.default_rng(0))]
    tour = Tour(module, prepared, plan(grow([steps_of(resnet_net.elastic, p) for p in prepared]), 0, 4))
    tour.statistics([torch.randn(4, 3, 32, 32)])
    assert sorted(sides) == sorted({resolution_of(p.subnet) for p in prepared})
