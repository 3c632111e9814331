"""Layers of a network by its graph, and the learning rates that follow."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import autotailor
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig
from autotailor.finetuning.layer_decay import learning_rate_scales, weight_depths
from training import weights


def test_the_stem_is_the_first_layer_then_come_the_blocks_and_the_head_is_the_last(
    plain_net: autotailor.SuperNet,
) -> None:
    depths = weight_depths(plain_net)
    blocks = len(plain_net.blocks)
    first, *_, last = (node for node in plain_net.graph.nodes if node.kind in ("Conv", "Gemm"))
    assert depths[first.inputs[1]] == 1
    assert depths[last.inputs[1]] == depths[last.inputs[2]] == 2 + blocks
    for number, block in enumerate(plain_net.blocks, 2):
        inside = {name for node in block.nodes for name in node.inputs if name in plain_net.graph.weights}
        assert {depths[name] for name in inside} == {number}
    assert set(depths) == set(plain_net.graph.weights)


def test_a_normalisation_belongs_to_the_convolution_before_it(plain_net: autotailor.SuperNet) -> None:
    depths, producers = weight_depths(plain_net), plain_net.graph.producers
    for node in plain_net.graph.nodes:
        if node.kind == "BatchNormalization":
            assert depths[node.inputs[1]] == depths[producers[node.inputs[0]].inputs[1]]


def test_the_rate_falls_by_the_decay_from_each_layer_to_the_one_before(plain_net: autotailor.SuperNet) -> None:
    module = plain_net.module()
    scales = learning_rate_scales(plain_net, module, 0.5)
    last = 2 + len(plain_net.blocks)
    for name, depth in weight_depths(plain_net).items():
        assert scales[module.weight_names[name]] == pytest.approx(0.5 ** (last - depth))
    assert learning_rate_scales(plain_net, module, 1.0) == {}


def test_early_layers_move_less(
    plain_net: autotailor.SuperNet, tiny: DataSplits, finetune_config: FinetuneConfig, tmp_path: Path
) -> None:
    config = replace(finetune_config, layer_decay=0.1, sort=False, optimizer="adamw", weight_decay=0.0)
    result = finetuning.finetune(plain_net, tiny, config, tmp_path)
    before, after, depths = weights(plain_net), weights(result.net), weight_depths(plain_net)
    moved = {name: float((after[name] - before[name]).abs().max()) for name in before if before[name].ndim > 1}
    early, late = (
        max(value for name, value in moved.items() if depths[name] == depth) for depth in (1, max(depths.values()))
    )
    assert 0 < early < 1e-3 * late
    assert result.history[0]["lr"] == pytest.approx(
        finetuning.training.schedule.learning_rate(config, 2, 6)  # the rate of the last layer
    )
    assert torch.isfinite(after[next(iter(after))]).all()
