"""Optimizers: what each is made with, and that a training with it goes on bit by bit from any step."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import autotailor
import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, FinetuneResult, TrainingError
from autotailor.finetuning.training import optimizers, regional_muon
from autotailor.finetuning.training.optimizers import make_optimizer, register
from training import PRETRAIN, equal, fresh, weights


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)


@pytest.mark.parametrize("name", optimizers.names())
def test_weights_with_one_axis_do_not_decay_and_factors_scale_the_rate(name: str) -> None:
    network = Network()
    made = make_optimizer(network, name, 0.1, 0.02, {"first.weight": 0.25, "first.bias": 0.25})
    found = [(group["lr_scale"], group["weight_decay"], group["params"]) for group in made.param_groups]
    assert [(scale, decay) for scale, decay, _ in found] == [(1.0, 0.02), (1.0, 0.0), (0.25, 0.02), (0.25, 0.0)]
    wanted = [network.second.weight, network.second.bias, network.first.weight, network.first.bias]
    assert all(parameters[0] is want for (_, _, parameters), want in zip(found, wanted, strict=True))
    assert {group["lr"] for group in made.param_groups} == {0.1}


@pytest.mark.parametrize("made", [None, torch.optim.SGD], ids=["nothing", "a class"])
def test_a_function_that_returns_no_optimizer_is_named(made: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(optimizers._OPTIMIZERS, "own", lambda groups, lr: made)  # type: ignore[arg-type, return-value]
    with pytest.raises(
        TrainingError, match=r"optimizer 'own': its function returned \w+, expected a torch\.optim\.Opt"
    ):
        make_optimizer(Network(), "own", 0.1, 0.02)


@pytest.mark.parametrize("name", optimizers.names())
def test_every_optimizer_learns(name: str, tiny: DataSplits, tmp_path: Path) -> None:
    config = replace(PRETRAIN, epochs=4, optimizer=name, lr={"sgd": 0.05, "lamb": 0.02}.get(name, 4e-3))
    losses = [row["loss"] for row in finetuning.pretrain(fresh(), tiny, config, tmp_path).history]
    assert losses[-1] < 0.9 * losses[0]


CHANGES = [{"ema": 0.9}, {"layer_decay": 0.8}, *({"optimizer": name} for name in optimizers.names())]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_training_that_is_killed_at_any_step_ends_in_the_same_bits(
    change: dict[str, object],
    plain_net: autotailor.SuperNet,
    tiny: DataSplits,
    finetune_config: FinetuneConfig,
    finetuned: FinetuneResult,
    tmp_path: Path,
) -> None:
    at = random.Random(str(change)).choice([(0, 2), (1, 0), (1, 1), (1, 2)])  # calibration reads what is before
    config = replace(finetune_config, checkpoint_seconds=0.0, **change)  # type: ignore[arg-type]
    whole = finetuning.finetune(plain_net, tiny, config, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.finetune(plain_net, tiny_data.splits(fail_at=at), config, tmp_path / "killed")
    assert (tmp_path / "killed" / "finetune.ckpt").exists()
    resumed = finetuning.finetune(plain_net, tiny, config, tmp_path / "killed")
    assert equal(weights(whole.net), weights(resumed.net))
    assert whole.history == resumed.history
    assert equal(weights(whole.net), weights(finetuned.net)) == (change == {"optimizer": "adamw"})


def test_the_fused_form_of_adamw_takes_the_same_steps_but_for_rounding() -> None:
    """Weights differ by less than a thousandth of what the steps changed."""
    networks = {}
    for name in ("adamw", "adamw_fused"):
        torch.manual_seed(0)
        networks[name] = Network()
        optimizer = make_optimizer(networks[name], name, 0.01, 0.1)
        assert [group["fused"] for group in optimizer.param_groups] == [name == "adamw_fused" or None] * 2
        for step in range(5):
            optimizer.zero_grad()
            random = torch.Generator().manual_seed(step)
            inner = networks[name].first(torch.randn(8, 3, generator=random))
            networks[name].second(inner.relu()).square().sum().backward()
            optimizer.step()
    for one, other in zip(networks["adamw"].parameters(), networks["adamw_fused"].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def muon_steps(lr: float, sizes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """What one step of Muon adds to weights of zeros, by name."""
    module, random = nn.Module(), torch.Generator().manual_seed(0)
    for name, size in sizes.items():
        parameter = nn.Parameter(torch.zeros(size))
        parameter.grad = torch.randn(size, generator=random)
        module.register_parameter(name, parameter)
    make_optimizer(module, "muon", lr, 0.1).step()
    return {name: parameter.detach() for name, parameter in module.named_parameters()}


def is_of_adam(step: torch.Tensor) -> bool:
    """Whether all numbers of a first step are of one size, because Adam divides each by its own size."""
    return bool((step.abs() / step.abs().mean() - 1).abs().max() < 1e-3)


def test_a_step_of_muon_is_orthogonal_and_as_large_as_those_of_adamw() -> None:
    """The polar factor of the gradient, which the SVD gives, is the reference; five Newton-Schulz steps are near it."""
    lr, sizes = 0.01, {"matrix": (16, 48), "convolution": (16, 8, 3, 3), "vector": (16,), "scalar": ()}
    taken, random = muon_steps(lr, sizes), torch.Generator().manual_seed(0)
    gradients = {name: torch.randn(size, generator=random) for name, size in sizes.items()}
    for name in ("matrix", "convolution"):
        step, gradient = taken[name].flatten(1), gradients[name].flatten(1)
        left, _, right = torch.linalg.svd(gradient, full_matrices=False)
        polar = -lr * 0.2 * max(step.shape) ** 0.5 * (left @ right)
        assert torch.nn.functional.cosine_similarity(step.flatten(), polar.flatten(), dim=0) > 0.97
        assert 0.6 < step.norm() / polar.norm() < 1.2
        assert 0.1 * lr < step.square().mean().sqrt() < 0.3 * lr  # AdamW's steps have 0.2 to 0.4 of its rate
    for name in ("vector", "scalar"):
        assert is_of_adam(taken[name])
        assert torch.equal(taken[name].sign(), -gradients[name].sign())


def test_matrices_that_muon_would_take_long_for_are_left_to_nadamw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regional_muon, "LARGEST_SIDE", 8)
    taken = muon_steps(0.01, {"large": (9, 3, 3, 3), "tall": (32, 8), "bias": (32,)})
    assert {name for name, step in taken.items() if is_of_adam(step)} == {"large", "bias"}


def test_a_name_is_registered_once() -> None:
    with pytest.raises(TrainingError, match="registered twice"):
        register("sgd")(lambda groups, lr: torch.optim.SGD(groups, lr=lr))
