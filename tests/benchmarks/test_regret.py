"""``benchmarks/regret.py``: which rivals a budget gets, and what is said of the chosen SubNet."""

from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import regret
from controls.outcome import Outcome

from autotailor.ir.space.metric import Metric
from autotailor.ir.supernet import SuperNet

IMAGES = 100


@dataclass(frozen=True)
class Net:
    """Stands for ``controls.run.Run``: MACs are the cost, and no training is needed to draw rivals."""

    net: SuperNet
    seed: int = 0

    @cached_property
    def cost(self) -> Metric:
        return self.net.macs()


def outcome(wrong: int, validation: float) -> Outcome:
    return Outcome(validation, np.arange(IMAGES) >= wrong, "{}", 0.5, 0.5)


def run(groups: Any = None) -> Any:
    images = SimpleNamespace(groups=np.arange(IMAGES) if groups is None else groups)
    return SimpleNamespace(model="m", seed=0, data=SimpleNamespace(test=images))


def test_rivals_are_near_the_budget_distinct_and_half_of_them_the_best(
    resnet_net: SuperNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject: Any = Net(resnet_net)
    monkeypatch.setattr(regret, "predicted_accuracy", lambda run: run.net.macs())  # the larger, the better
    avoid = resnet_net.smallest()
    whole = float(subject.cost.predict(resnet_net.largest().to_array())[0])
    found = regret.rivals(subject, 60, avoid, 10)
    macs = [float(subject.cost.predict(subnet.to_array())[0]) / whole for subnet in found]
    assert len(set(found)) == 10
    assert all(0.6 * regret.NEAR <= each <= 0.6 for each in macs)
    near = regret.near(subject, 60, avoid, 40)
    best = sorted((float(subject.cost.predict(s.to_array())[0]) / whole for s in near), reverse=True)[:5]
    assert sorted(macs[:5], reverse=True) == best


def test_budgets_that_random_subnets_hardly_meet_have_rivals(resnet_net: SuperNet) -> None:
    subject: Any = Net(resnet_net)
    whole = float(subject.cost.predict(resnet_net.largest().to_array())[0])
    for budget in (12, 90):
        found = regret.near(subject, budget, resnet_net.smallest(), 20)
        macs = [float(subject.cost.predict(subnet.to_array())[0]) / whole for subnet in found]
        assert len(set(found)) >= 20
        assert all(budget / 100 * regret.NEAR <= each <= budget / 100 for each in macs)


def test_too_few_rivals_are_an_error(resnet_net: SuperNet) -> None:
    with pytest.raises(SystemExit, match="0 SubNets are near 1 %"):
        regret.rivals(Net(resnet_net), 1, resnet_net.smallest(), 4)  # type: ignore[arg-type]


def test_the_chosen_subnet_itself_is_no_rival(resnet_net: SuperNet) -> None:
    subject: Any = Net(resnet_net)
    some = regret.near(subject, 60, resnet_net.smallest(), 4)[0]
    assert some not in regret.near(subject, 60, some, 4)


def test_the_regret_is_against_the_rival_that_validation_calls_best() -> None:
    outcomes = {"a": outcome(6, 95.0), "b": outcome(4, 97.0), "c": outcome(2, 94.0)}
    row = regret.judge(run(), 50, regret.Trained("a", outcomes))
    assert row["best"] == pytest.approx(96.0)
    assert row["regret"] == pytest.approx(2.0)
    assert row["luckiest"] == pytest.approx(98.0)
    assert (row["rank"], row["validation_rank"], row["rivals"]) == (2, 1, 2)


def test_copies_of_an_image_count_as_one_draw() -> None:
    outcomes = {"a": outcome(6, 95.0), "b": outcome(4, 97.0)}
    alone = regret.judge(run(), 50, regret.Trained("a", outcomes))
    copies = regret.judge(run(np.arange(IMAGES) // 2), 50, regret.Trained("a", outcomes))
    assert copies["regret_error"] > alone["regret_error"]
