"""Stages on other pictures: what they learn, that they go on, and that what does not fit is refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests import networks

import autotailor
import tiny_data
from autotailor import finetuning
from autotailor.accuracy.calibration import Calibrator, resolution_of
from autotailor.data import DataSplits
from autotailor.data.splits import sized
from autotailor.finetuning import FinetuneConfig, FinetuneResult, TrainingError
from autotailor.finetuning.backbone import FeatureSharing
from autotailor.finetuning.config import StageConfig
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.features import feature_loss
from autotailor.finetuning.sampling.strategy import stages_of
from autotailor.finetuning.training.steps import Step
from autotailor.ir.junctions import selected
from autotailor.ir.space.subnet import SubNet
from training import equal, weights

IMAGES = 96


@pytest.fixture
def config(finetune_config: FinetuneConfig) -> FinetuneConfig:
    """One stage and no epochs; the largest, the smallest and another SubNet learn in each step."""
    return replace(finetune_config, epochs=0, stages=(StageConfig({"name": "first"}, IMAGES),))


def unlabelled(fail_at: tuple[int, int] | None = None) -> DataSplits:
    """Pictures of which nothing is known."""
    found = tiny_data.splits(fail_at)
    return replace(found, name="first", fingerprint="first", num_classes=0, labelled=False)


def trained(
    net: autotailor.SuperNet, config: FinetuneConfig, folder: Path, first: DataSplits | None = None
) -> FinetuneResult:
    data, firsts = tiny_data.splits(), [first or unlabelled()] * len(config.stages)
    begun = finetuning.begin(net, firsts, data, config, folder)
    return finetuning.finetune(net, data, config, folder, begun=begun)


def streams(net: autotailor.SuperNet) -> Mapping[str, int]:
    dimensions = net.propagation.dimensions
    return {block.output: dimensions[block.output].index(block.width_out) for block in net.blocks}


def distance(net: autotailor.SuperNet, subnet: SubNet, given: autotailor.SuperNet) -> float:
    """How far a SubNet's streams are from those of the given network, on pictures that nobody has seen."""
    images, _ = tiny_data.draw(40, 7)
    sorted_ = given.sort_channels()
    calibration = Calibrator(tiny_data.splits(), FinetuneConfig(epochs=0).calibration)
    found = []
    for each, module in ((subnet, net.module()), (given.largest(), sorted_.module())):
        module.eval().activate(each)
        if module.elastic.recalibrated:
            module.statistics = calibration.statistics(module, each) if each == subnet else None
        values = {module.graph.input: sized(images, resolution_of(each))}
        with torch.no_grad():
            module.advance(values, 0, len(module.schedule.nodes), hold=streams(net))
        found.append(values)
    names = [name for name in streams(net) if name in found[0]]
    assert names
    return float(np.mean([feature_loss(found[0][n], found[1][n], streams(net)[n]) for n in names]))


def test_subnets_come_nearer_to_the_features_of_the_given_network(
    plain_net: autotailor.SuperNet, config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(config, stages=(StageConfig({}, 20 * IMAGES),))
    untrained = trained(plain_net, replace(config, stages=()), tmp_path / "none")
    found = trained(plain_net, config, tmp_path / "stage")
    before, after = (distance(each.net, plain_net.smallest(), plain_net) for each in (untrained, found))
    assert after < 0.8 * before
    assert [row["epoch"] for row in found.history] == list(range(len(found.history)))
    assert found.history[-1]["loss"] < found.history[0]["loss"]
    assert found.metrics["images"] == 20 * IMAGES


def test_the_loss_is_the_mean_distance_of_the_streams_and_of_what_the_classifier_reads(
    plain_net: autotailor.SuperNet, config: FinetuneConfig
) -> None:
    module, teacher = plain_net.module(logits=True), Teacher.largest_of(plain_net, torch.device("cpu"))
    strategy = finetuning.sampling.create("uniform", plain_net.space, stages_of(plain_net.space, plain_net.stages), 1)
    (drawn,) = strategy.draw(0.0, np.random.default_rng(0))
    images, labels = tiny_data.draw(8, 3)
    step = FeatureSharing(module, teacher, strategy, config, streams(plain_net))
    found = step(Step(images, torch.full_like(labels, -1), 0.0, np.random.default_rng(0)))
    values = {}
    for name, network, subnet in (
        ("ours", module.train().activate(drawn), drawn),
        ("given", plain_net.build(plain_net.largest()), plain_net.largest()),
    ):
        values[name] = {network.graph.input: sized(images, resolution_of(subnet))}
        everything = [output for node in network.schedule.nodes for output in node.outputs]
        network.advance(values[name], 0, len(network.schedule.nodes), hold=everything)
    last = next(node for node in module.graph.nodes if node.kind in ("Gemm", "MatMul")).inputs[0]
    names = [name for name in (*streams(plain_net), last) if name in values["ours"]]
    each = [feature_loss(values["ours"][n], values["given"][n], streams(plain_net).get(n)) for n in names]
    assert len(each) > 2
    assert found == pytest.approx(torch.stack(each).mean().item(), rel=1e-5)
    moved = {gradient.weight for gradient in module.partial_gradients}
    classifier = next(node for node in module.graph.nodes if last in node.inputs)
    assert moved
    assert not moved & set(classifier.inputs)


def test_the_task_is_learnt_behind_the_stages_from_what_they_have_left(
    plain_net: autotailor.SuperNet, config: FinetuneConfig, tmp_path: Path
) -> None:
    both = trained(plain_net, replace(config, epochs=1), tmp_path / "both")
    assert [row["epoch"] for row in both.history] == list(range(len(both.history)))
    assert both.metrics["images"] == IMAGES + 48
    first, alone = (trained(plain_net, replace(config, **changed), tmp_path / name) for name, changed in
                    (("first", {}), ("alone", {"epochs": 1, "stages": ()})))  # fmt: skip
    assert both.history[: len(first.history)] == first.history
    assert both.history[-1]["loss"] != alone.history[-1]["loss"]
    assert both.metrics["original_validation_accuracy"] == alone.metrics["original_validation_accuracy"]
    assert both.net.sorting == alone.net.sorting


def test_an_interrupted_stage_ends_in_the_same_bits(
    plain_net: autotailor.SuperNet, config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(config, epochs=1, checkpoint_seconds=0.0)
    whole = trained(plain_net, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained(plain_net, config, tmp_path / "killed", unlabelled(fail_at=(1, 0)))
    resumed = trained(plain_net, config, tmp_path / "killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert (whole.history, whole.metrics) == (resumed.history, resumed.metrics)


def test_alternatives_alone_learn_where_the_given_network_is_frozen(config: FinetuneConfig, tmp_path: Path) -> None:
    """As AdaptiveNet has it: new branches learn features on the first set, and the given network stays."""
    space = {"resolution": [32], "alternatives": {"shrunk": [0.5], "low_rank": [0.5]}}
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    result = trained(net, replace(config, freeze="original", sort=False), tmp_path)
    given, found = selected(net.graph).weights, result.net.graph.weights
    changed = {name for name, weight in net.graph.weights.items() if not np.array_equal(weight, found[name])}
    assert changed
    assert not changed & given.keys()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"resolution": 24},
            r"data first gives RGB images of 24 pixels \[3, 24, 24\], .* takes RGB images of 32 pixels",
        ),
        ({"mean": (0.5, 0.5, 0.5)}, r"normalised by mean \[0\.5, .* trained with mean \[0\.0, .*: give both sections"),
        ({"mean": (0.0,), "std": (1.0,)}, r"\[1, 32, 32\], and the network takes"),
    ],
)
def test_pictures_that_do_not_fit_the_network_are_refused_before_any_training(
    changed: dict[str, object], says: str, plain_net: autotailor.SuperNet, config: FinetuneConfig, tmp_path: Path
) -> None:
    first = replace(unlabelled(), **changed)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match=rf"^finetune\.stages: .*{says}"):
        trained(plain_net, config, tmp_path, first)
    assert not list(tmp_path.iterdir())


def test_a_network_that_does_not_know_the_task_is_refused_before_the_stages(
    plain_net: autotailor.SuperNet, config: FinetuneConfig, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=r"set finetune\.accept_chance to true"):
        trained(plain_net, replace(config, accept_chance=False), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_network_without_blocks_has_no_features_to_learn(
    plain_net: autotailor.SuperNet, config: FinetuneConfig
) -> None:
    strategy = finetuning.sampling.create("uniform", plain_net.space, stages_of(plain_net.space, plain_net.stages), 1)
    with pytest.raises(TrainingError, match=r"no block of the network is recognised, .*leave stages out"):
        FeatureSharing(plain_net.module(), Teacher(torch.nn.Identity(), 0), strategy, config, {})
