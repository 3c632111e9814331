"""What the classifier reads is found in the graph, and compared with the teacher's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import autotailor
import networks
from autotailor.data import DataSplits, resize
from autotailor.finetuning import DistillationConfig
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing import PolishConfig
from autotailor.finetuning.polishing.features import feature_loss, featured, features_of
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.polishing.teacher import choose_teacher
from autotailor.finetuning.training.steps import Step
from autotailor.ir.execution.head import find_features
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.task import find


@pytest.mark.parametrize("name", ["resnet", "mobilenet"])
def test_the_last_map_makes_the_logits_of_the_features(name: str) -> None:
    net = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    network = net.build(net.smallest(), logits=True)
    assert isinstance(network, GraphModule)
    images = torch.randn(3, 3, int(net.smallest()["resolution"]), int(net.smallest()["resolution"]))
    with torch.no_grad():
        logits, features = featured(network, features_of(network, ()))(images)
        assert torch.equal(logits, network(images))
    (last,) = (node for node in net.graph.nodes if find_features(net.graph) in net.graph.activations(node))
    assert last.kind in ("Gemm", "MatMul", "Conv")
    assert len(features) == 3
    assert feature_loss(features, features) == 0
    assert feature_loss(features + features.std(), features) == pytest.approx(1.0, rel=1e-3)


def test_a_network_without_a_graph_has_no_features() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    assert features_of(network, ["stream"]) == ()
    assert featured(network, ()) is network


def test_fewer_channels_are_compared_with_the_first_ones_and_other_shapes_with_nothing() -> None:
    teacher = torch.randn(4, 6, 1, 1)
    assert feature_loss(teacher[:, :4], teacher) == 0
    assert feature_loss(teacher[:, :4] + 1, teacher) > 0
    assert feature_loss(torch.ones(4, 3, 2, 2), torch.zeros(4, 6, 1, 1)) == 0
    assert feature_loss(torch.ones(4, 6), teacher) == 0


def test_smaller_maps_are_compared_with_means_of_the_teachers() -> None:
    teacher = torch.randn(4, 6, 8, 8)
    assert feature_loss(functional.avg_pool2d(teacher, 2)[:, :3], teacher) == 0
    last = teacher.movedim(1, -1)  # as Swin's blocks hand their maps on
    assert feature_loss(functional.avg_pool2d(teacher, 2)[:, :3].movedim(1, -1), last, 3) == 0
    assert feature_loss(functional.avg_pool2d(teacher, 2).movedim(1, -1) + 1, last, 3) > 0
    assert feature_loss(torch.ones(4, 6, 7), torch.zeros(4, 5, 8)) == 0


def test_tokens_are_compared_by_their_channels_and_not_with_those_of_larger_images() -> None:
    teacher = torch.randn(4, 9, 8)
    assert feature_loss(teacher[..., :5], teacher) == 0
    assert feature_loss(teacher[..., :5] + 1, teacher) > 0
    assert feature_loss(teacher[:, :5] + 1, teacher) == 0


def test_the_loss_of_a_subnet_is_divergence_and_distances(tiny: DataSplits, config: PolishConfig) -> None:
    net = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32)
    streams = {block.output: 1 for block in net.blocks}
    subnet = net.smallest()
    student, teacher = net.build(subnet, logits=True).eval(), net.build(net.largest(), logits=True).eval()
    config = replace(config, features=2.0, streams=3.0, distillation=DistillationConfig(weight=1.0), frozen=True)
    images, labels = next(iter(tiny.validation.batches(8)))
    step = Lockstep([student], [16], Teacher(teacher, 32), config, find("classification"), streams=streams)
    (found,) = step.losses(Step(images, labels, 0.0, np.random.default_rng(0)))
    step.close()
    with torch.no_grad():
        values, wanted = ({n.graph.input: resize(images, size)} for n, size in ((student, 16), (teacher, 32)))
        for network, each in ((student, values), (teacher, wanted)):
            network.advance(each, 0, len(network.schedule.nodes), hold=tuple(network.graph.shapes))
    kept = [name for name in streams if name in values]
    assert 0 < len(kept) < len(streams)
    pairs = [(values[name], wanted[name]) for name in kept]
    maps = [(a, functional.adaptive_avg_pool2d(b, a.shape[2:])[:, : a.shape[1]]) for a, b in pairs]
    distances = [(functional.mse_loss(a, b) / b.var()).item() for a, b in maps]
    last = find_features(student.graph)
    divergence = functional.kl_div(
        values[student.graph.output].log_softmax(1), wanted[teacher.graph.output].softmax(1), reduction="batchmean"
    )
    head = wanted[last][:, : values[last].shape[1]]
    expected = divergence + 2 * functional.mse_loss(values[last], head) / head.var() + 3 * np.mean(distances)
    assert found == pytest.approx(expected.item(), rel=1e-4)


def test_the_original_network_shows_its_features_in_the_order_of_the_supernet(
    tiny: DataSplits, config: PolishConfig
) -> None:
    original = autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], resolution=32)
    net = original.sort_channels()
    students = [net, original.sort_channels().sorted_as(original)]
    images = torch.randn(4, 3, 32, 32)
    for student, like in zip(students, (net, original), strict=True):
        teacher = choose_teacher(student, original, tiny, replace(config, teacher="original"), torch.device("cpu"))
        with torch.no_grad():
            logits, *features = shown(student.build(student.largest(), logits=True), images)
            wanted, *taught = shown(teacher.network, images)
        assert student.sorting == like.sorting
        torch.testing.assert_close(logits, wanted)
        assert len(features) > len(original.blocks)
        torch.testing.assert_close(features, taught)
    assert net.sorting != original.sorting


def shown(network: nn.Module, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
    assert isinstance(network, GraphModule)
    streams = [name for name in network.graph.shapes if name in network.graph.producers]
    outputs: tuple[torch.Tensor, ...] = featured(network, features_of(network, streams))(images)
    return outputs
