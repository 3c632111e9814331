from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import autotailor
from autotailor.finetuning import TrainingError, sampling
from autotailor.finetuning.sampling.strategy import by_size, register, stages_of
from autotailor.ir.space.variable import Variable


def make(name: str, net: autotailor.SuperNet, count: int = 3) -> sampling.Strategy:
    return sampling.create(name, net.space, stages_of(net.space, net.stages), count)


def test_all_strategies_are_found() -> None:
    assert sampling.names() == ("alternating", "compofa", "progressive", "sandwich", "uniform")


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
    with pytest.raises(TrainingError, match="alternating, compofa, progressive, sandwich, uniform"):
        make("hamburger", resnet_net)
    with pytest.raises(TrainingError, match="twice"):
        register("uniform")(sampling.Strategy)


def test_the_sandwich_has_both_ends(resnet_net: autotailor.SuperNet) -> None:
    drawn = make("sandwich", resnet_net, 4).draw(0.0, np.random.default_rng(0))
    assert drawn[:2] == (resnet_net.largest(), resnet_net.smallest())
    assert len(set(drawn)) == 4


def test_alternating_draws_the_largest_in_every_second_step_and_the_smallest_always(
    resnet_net: autotailor.SuperNet,
) -> None:
    strategy = make("alternating", resnet_net, 2)
    drawn = [strategy.draw(0.0, np.random.default_rng(step)) for step in range(200)]
    assert all(len(subnets) == 2 and subnets[1] == resnet_net.smallest() for subnets in drawn)
    first = [subnets[0] for subnets in drawn]
    assert 70 < sum(subnet == resnet_net.largest() for subnet in first) < 140  # what lies between may be the largest
    assert len(set(first)) > 50


def test_compofa_moves_the_dimensions_of_a_stage_together(resnet_net: autotailor.SuperNet) -> None:
    strategy = make("compofa", resnet_net, 200)
    stages = {}
    for subnet in strategy.draw(0.0, np.random.default_rng(0)):
        for stage, blocks in (("stage1", ("block1", "block2")), ("stage2", ("block3", "block4"))):
            kept = [subnet[f"{b}.expand_ratio"] for b in blocks[:1]]
            stages.setdefault(stage, set()).add((subnet[f"{stage}.width"], subnet[f"{stage}.depth"], *kept))
    for combinations in stages.values():
        assert 2 <= len(combinations) <= 3  # three levels instead of 3 * 2 * 3 combinations
        ordered = sorted(combinations)
        assert [c[1] for c in ordered] == sorted((c[1] for c in ordered), reverse=True)
        assert [c[2] for c in ordered] == sorted(c[2] for c in ordered)


def test_stages_own_their_blocks(resnet_net: autotailor.SuperNet) -> None:
    owners = stages_of(resnet_net.space, resnet_net.stages)
    assert owners["block1.expand_ratio"] == owners["stage1.width"] == "stage1"
    assert "resolution" not in owners


def test_progressive_opens_kinds_one_after_another(resnet_net: autotailor.SuperNet) -> None:
    strategy = make("progressive", resnet_net, 60)

    def changed(progress: float) -> Counter[str]:
        drawn = strategy.draw(progress, np.random.default_rng(0))
        return Counter(m.variable.rsplit(".")[-1] for subnet in drawn for m in subnet.modifications)

    assert set(changed(0.0)) == {"resolution"}
    assert set(changed(0.29)) == {"resolution", "depth"}
    assert set(changed(0.59)) == {"resolution", "depth", "expand_ratio"}
    assert set(changed(1.0)) == {"resolution", "depth", "expand_ratio", "width"}


def test_uniform_reaches_every_choice(resnet_net: autotailor.SuperNet) -> None:
    drawn = make("uniform", resnet_net, 200).draw(0.0, np.random.default_rng(0))
    for variable in resnet_net.space:
        assert {subnet[variable.name] for subnet in drawn} == set(variable.choices)


def test_by_size_begins_with_what_leaves_most() -> None:
    assert by_size(Variable("stage1.depth", "depth", (0, 1, 2), 0)) == (0, 1, 2)
    assert by_size(Variable("stage1.width", "width", (0.5, 0.75, 1.0), 2)) == (2, 1, 0)
