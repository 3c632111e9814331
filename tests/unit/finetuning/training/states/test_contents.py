"""What a training takes over from the checkpoint of another one, and what it refuses."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import networks
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import TrainingError
from autotailor.finetuning.config import WatchConfig
from autotailor.finetuning.training import optimizers
from autotailor.finetuning.training.optimizers import make_optimizer
from autotailor.finetuning.training.states.contents import Average, load_optimizer
from training import PRETRAIN, equal, fresh


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def take(module: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    """Takes steps whose gradients depend on the number of the step only."""
    for step in steps:
        optimizer.zero_grad()
        images = torch.randn(8, 3, generator=torch.Generator().manual_seed(step))
        module(images).square().sum().backward()
        optimizer.step()


def states(name: str) -> tuple[nn.Module, dict[str, Any]]:
    """A network after two steps, and the state of its optimizer."""
    module = small()
    optimizer = make_optimizer(module, name, 0.01, 0.1)
    take(module, optimizer, range(2))
    return module, copy.deepcopy(optimizer.state_dict())


@pytest.mark.parametrize("name", optimizers.names())
def test_an_optimizer_goes_on_in_the_same_bits(name: str) -> None:
    whole = small()
    take(whole, make_optimizer(whole, name, 0.01, 0.1), range(4))
    resumed, state = states(name)
    optimizer = make_optimizer(resumed, name, 0.01, 0.1)
    load_optimizer(optimizer, state)
    take(resumed, optimizer, range(2, 4))
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize("name", optimizers.names())
def test_the_weight_decay_is_the_one_of_the_configuration(name: str) -> None:
    module, state = states(name)
    optimizer = make_optimizer(module, name, 0.02, 0.3)
    load_optimizer(optimizer, state)
    assert [(group["lr"], group["weight_decay"]) for group in optimizer.param_groups] == [(0.02, 0.3), (0.02, 0.0)]
    assert len(optimizer.state) == 4  # the moments of both weights and both biases


def pairs() -> Iterator[tuple[str, str]]:
    """Each optimizer with each other one whose moments have another meaning."""
    kinds = [name for name in optimizers.names() if name != "adamw_fused"]
    yield from ((one, other) for one in kinds for other in kinds if one != other)


@pytest.mark.parametrize(("before", "now"), pairs())
def test_the_state_of_another_optimizer_is_refused(before: str, now: str) -> None:
    module, state = states(before)
    with pytest.raises(ValueError, match="it was trained with another optimizer than"):
        load_optimizer(make_optimizer(module, now, 0.01, 0.1), state)


def test_other_groups_of_parameters_are_refused() -> None:
    module, state = states("sgd")
    for scales in ({"0.weight": 0.5}, {"0.weight": 0.5, "0.bias": 0.5, "2.weight": 0.5}):
        with pytest.raises(ValueError, match=r"with other factors of lr \(layer_decay\)"):
            load_optimizer(make_optimizer(module, "sgd", 0.01, 0.1, scales), state)


@pytest.mark.parametrize(
    ("network", "optimizer", "says"),
    [(fresh, "sgd", "it was trained with another optimizer than SGD"), (networks.TinyMobileNet, "adamw", "it holds")],
    ids=["optimizer", "network"],
)
def test_a_training_says_why_it_cannot_go_on(
    network: Any, optimizer: str, says: str, tiny: DataSplits, tmp_path: Path
) -> None:
    config = replace(PRETRAIN, epochs=1)
    finetuning.pretrain(fresh(), tiny, config, tmp_path / "one")
    other = replace(config, optimizer=optimizer, resume_from=str(tmp_path / "one" / "pretrain.ckpt"))
    with pytest.raises(TrainingError) as refused:
        finetuning.pretrain(network(), tiny, other, tmp_path / "two")
    said = str(refused.value)
    assert said.startswith(f"pretrain cannot go on from {tmp_path / 'one' / 'pretrain.ckpt'}: {says}")
    assert "Error(s) in loading" not in said
    assert said.endswith("lr and weight_decay may differ")


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
