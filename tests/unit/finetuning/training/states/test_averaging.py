"""The moving average of the weights: its formula, and where a training uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning.config import WatchConfig
from autotailor.finetuning.training.states.averaging import Average
from training import PRETRAIN, equal, fresh


def test_the_average_follows_its_formula_and_integers_are_taken_over() -> None:
    module = nn.BatchNorm1d(1)
    average = Average(module, decay=0.5)
    expected = 1.0
    for step, value in enumerate([3.0, -2.0, 5.0, 8.0, 1.0, 9.0, 4.0, 2.0, 7.0], 1):
        module.weight.data.fill_(value)
        module.num_batches_tracked.fill_(step)
        average.update(step)
        share = min(0.5, (1 + step) / (10 + step))
        expected = share * expected + (1 - share) * value
        assert average.values["weight"].item() == pytest.approx(expected, rel=1e-5)
        assert average.values["num_batches_tracked"].item() == step


def test_the_module_gets_its_own_bits_back_in_the_same_memory() -> None:
    module = fresh()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    places = [parameter.data_ptr() for parameter in module.parameters()]
    average = Average(fresh(1), 0.9)
    average._module = module
    with average.applied():
        assert equal(dict(module.state_dict()), average.values)
    assert equal(dict(module.state_dict()), before)
    assert [parameter.data_ptr() for parameter in module.parameters()] == places


def test_a_training_measures_and_ends_with_the_average_and_its_steps_are_those_without(
    tiny: DataSplits, tmp_path: Path
) -> None:
    config = replace(PRETRAIN, ema=0.9, panel=WatchConfig(every=1, images=1000))
    plain = finetuning.pretrain(fresh(), tiny, PRETRAIN, tmp_path / "plain")
    averaged = finetuning.pretrain(fresh(), tiny, config, tmp_path / "averaged")
    state = torch.load(tmp_path / "averaged" / "pretrain.ckpt")["state"]
    assert equal(state["module"], plain.state_dict)
    assert equal(state["average"], averaged.state_dict)
    assert not equal(averaged.state_dict, plain.state_dict)
    assert [row["loss"] for row in averaged.history] == [row["loss"] for row in plain.history]
    assert averaged.history[-1]["validation_accuracy"] == averaged.metrics["validation_accuracy"]
    best = torch.load(tmp_path / "averaged" / "pretrain.best.ckpt")["state"]
    kept = finetuning.pretrain(fresh(), tiny, replace(config, keep="best"), tmp_path / "averaged")
    assert equal(kept.state_dict, best["module"])
