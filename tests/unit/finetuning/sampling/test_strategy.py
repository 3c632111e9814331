"""What every sampling strategy does, and how strategies are registered."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autotailor
from autotailor.finetuning import TrainingError, sampling
from autotailor.finetuning.sampling.strategy import by_size, register, stages_of
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space, Variable
from sampling_strategies import make


def test_all_strategies_are_found() -> None:
    assert sampling.names() == ("alternating", "compofa", "mixed", "progressive", "sandwich", "uniform")


@pytest.mark.parametrize("name", sampling.names())
class TestEveryStrategy:
    def test_it_draws_so_many_subnets_of_the_space_and_the_same_again(
        self, name: str, any_net: autotailor.SuperNet
    ) -> None:
        strategy = make(name, any_net)
        for progress in (0.0, 0.5, 1.0):
            drawn = strategy.draw(progress, np.random.default_rng(5))
            assert len(drawn) == 3
            assert all(subnet.space == any_net.space for subnet in drawn)
            assert drawn == strategy.draw(progress, np.random.default_rng(5))

    def test_one_subnet_per_step_is_enough(self, name: str, any_net: autotailor.SuperNet) -> None:
        assert len(make(name, any_net, 1).draw(0.3, np.random.default_rng(0))) == 1


def test_unknown_strategies_are_refused_with_the_known_ones(resnet_net: autotailor.SuperNet) -> None:
    with pytest.raises(TrainingError, match="alternating, compofa, mixed, progressive, sandwich, uniform"):
        make("hamburger", resnet_net)
    with pytest.raises(TrainingError, match="twice"):
        register("uniform")(sampling.Strategy)


def test_a_parameter_that_a_strategy_does_not_have_is_refused_by_name() -> None:
    assert sampling.parameters("uniform", {}) is not None
    with pytest.raises(TrainingError, match=r"strategy 'uniform': finetune\.sampling: unknown keys \['smallest'\]"):
        sampling.parameters("uniform", {"smallest": 0.5})


def test_stages_own_their_blocks(resnet_net: autotailor.SuperNet) -> None:
    owners = stages_of(resnet_net.space, resnet_net.stages)
    assert owners["block1.expand_ratio"] == owners["stage1.width"] == "stage1"
    assert "resolution" not in owners


def test_by_size_begins_with_what_leaves_most() -> None:
    assert by_size(Variable("stage1.depth", "depth", (0, 1, 2), 0, least=2)) == (0, 1, 2)
    assert by_size(Variable("stage1.width", "width", (0.5, 0.75, 1.0), 2)) == (2, 1, 0)


@pytest.mark.parametrize("wrong", [dict, object, lambda: None, sampling.Strategy])
def test_what_draws_no_subnets_is_not_registered(wrong: object) -> None:
    with pytest.raises(TrainingError, match="'mine': expected a class that derives from Strategy and defines draw"):
        register("mine")(wrong)
    assert "mine" not in sampling.names()


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda self: None, "gave NoneType, expected a tuple of SubNets"),
        (lambda self: self.largest(), "gave SubNet, expected a tuple of SubNets"),
        (lambda self: (), r"gave 0 SubNets, expected 1 to 3 \(finetune\.subnets\)"),
        (lambda self: (self.largest(),) * 4, "gave 4 SubNets, expected 1 to 3"),
        (lambda self: (self.largest().assignment,), "gave a dict among the SubNets"),
        (lambda self: (SubNet(Space(()), ()),), "gave SubNet .* of another space, expected SubNets of self.space"),
        (lambda self: (self.smallest(), self.largest()), "gave the largest SubNet behind another one; with in_place"),
    ],
)
def test_a_step_that_cannot_be_trained_says_what_was_expected(
    draw: Callable[[sampling.Strategy], Any], words: str, resnet_net: autotailor.SuperNet
) -> None:
    class Mine(sampling.Strategy):
        in_place = True

        def draw(self, progress: float, random: np.random.Generator) -> tuple[SubNet, ...]:
            return draw(self)

    strategy = Mine(resnet_net.space, {}, 3)
    with pytest.raises(TrainingError, match=f"sampling strategy .*Mine: draw {words}"):
        strategy.step(0.5, np.random.default_rng(0))
