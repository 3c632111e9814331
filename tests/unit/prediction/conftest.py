"""A made-up world: SubNets of a small ResNet whose true accuracies are known, and images that answer for them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import autotailor
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.ir.space.variable import Modification
from autotailor.prediction import Outcome, Outcomes

IMAGES, COPIES = 2000, 4


@dataclass(frozen=True, eq=False)
class World:
    """True log-odds are a sum of single effects, each twice as large at the smaller resolution.

    Attributes:
        net: the SuperNet.
        effects: of each variable's choices, 0 for the unmodified one.
    """

    net: autotailor.SuperNet
    effects: dict[str, FloatArray]

    @property
    def cost(self) -> Metric:
        return self.net.macs()

    @property
    def groups(self) -> np.ndarray:
        return np.arange(IMAGES) // COPIES

    def linear(self, subnets: Sequence[SubNet]) -> FloatArray:
        """True log-odds against the largest SubNet ``[n]``, without misfit."""
        rows = stack(subnets)
        total = np.zeros(len(rows))
        for column, variable in enumerate(self.net.space):
            total += self.effects[variable.name][rows[:, column]]
        small = rows[:, self.net.space.positions["resolution"]] != self.net.space["resolution"].default
        return np.asarray(total * np.where(small, 2.0, 1.0))

    def evaluate(self, subnets: Sequence[SubNet], groups_fail_alike: bool = False) -> dict[str, Outcome]:
        """Outcomes by SubNet id; all SubNets find the same base images hard, and differ a little by themselves.

        An image is right where the margin of its label is positive, and its loss is that of two classes.

        Args:
            subnets: to be evaluated.
            groups_fail_alike: whether SubNets with the same choice of a variable find the same base images harder.
        """
        random = np.random.default_rng(1)
        hard = random.logistic(0.0, 1.0, IMAGES // COPIES).repeat(COPIES)
        harder = [
            float(groups_fail_alike)
            * random.normal(0.0, 0.3, (len(v.choices), IMAGES // COPIES)).repeat(COPIES, axis=1)
            for v in self.net.space
        ]
        found = {}
        for subnet, linear in zip(subnets, self.linear(subnets), strict=True):
            own = np.random.default_rng(int(subnet.id, 16) % 2**32)
            alike = sum(table[choice] for table, choice in zip(harder, subnet.indices, strict=True))
            margin = 2.5 + linear + alike + own.normal(0.0, 0.05) + hard + own.normal(0.0, 0.4, IMAGES)
            found[subnet.id] = Outcome(margin > 0, np.logaddexp(0.0, -margin).astype(np.float32))
        return found

    def singles(self) -> list[SubNet]:
        base = self.net.largest()
        return [base, *(base.transform(Modification(v.name, c)) for v in self.net.space for c in v.choices)]

    def outcomes(self, count: int, seed: int = 0, groups_fail_alike: bool = False) -> Outcomes:
        """Evaluations of all single modifications and of random SubNets; arguments as of ``evaluate``."""
        subnets = [*self.singles(), *sample_distinct(self.net.space, count, np.random.default_rng(seed))]
        return Outcomes.of(self.net.space, subnets, self.evaluate(subnets, groups_fail_alike), self.groups)


@pytest.fixture(scope="session")
def world(resnet_net: autotailor.SuperNet) -> World:
    """The world of the small ResNet."""
    random = np.random.default_rng(3)
    effects = {}
    for variable in resnet_net.space:
        effect = -random.exponential(0.25, len(variable.choices))
        effect[variable.default] = 0.0
        effects[variable.name] = effect
    return World(resnet_net, effects)
