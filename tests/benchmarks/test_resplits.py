"""Divisions of base images for ``benchmarks/accuracy_coverage.py``."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from evaluated.resplits import Division, divisions, on_both

from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcome, Outcomes

GROUPS = {"validation": np.arange(21) // 3, "test": np.arange(10) // 2}


@dataclass(frozen=True)
class Evaluated:
    """Stands for ``evaluated.network.Network``: 7 base images in three copies for validation, 5 in two for the test."""

    net: SuperNet

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(**{name: SimpleNamespace(groups=groups) for name, groups in GROUPS.items()})

    def outcomes(self, subnets: list[SubNet]) -> Outcomes:
        return self._on("validation", subnets)

    def test_outcomes(self, subnets: list[SubNet]) -> Outcomes:
        return self._on("test", subnets)

    def _on(self, split: str, subnets: list[SubNet]) -> Outcomes:
        random = np.random.default_rng(len(split))
        images = len(GROUPS[split])
        found = {
            subnet.id: Outcome(random.random(images) < 0.7, random.random(images).astype(np.float32))
            for subnet in [self.net.largest(), *subnets]
        }
        return Outcomes.of(self.net.space, subnets, found, GROUPS[split])


def test_base_images_are_divided_whole_and_anew_each_time(resnet_net: SuperNet) -> None:
    network = Evaluated(resnet_net)
    subnets = list(sample_distinct(resnet_net.space, 4, np.random.default_rng(0)))
    both = on_both(network, subnets)  # type: ignore[arg-type]
    seen = set()
    for division in divisions(network, 6):  # type: ignore[arg-type]
        learnt, judged = division.learnt(both), division.judged(both)
        assert len(np.unique(learnt.groups)) == 7
        assert len(np.unique(judged.groups)) == 5
        assert not set(learnt.groups) & set(judged.groups)
        assert learnt.values.shape[1] + judged.values.shape[1] == 31
        seen.add(tuple(sorted(set(learnt.groups))))
    assert len(seen) > 3


def test_the_division_at_hand_has_the_outcomes_of_both_sets(resnet_net: SuperNet) -> None:
    network = Evaluated(resnet_net)
    subnets = list(sample_distinct(resnet_net.space, 4, np.random.default_rng(0)))
    both, at_hand = on_both(network, subnets), Division(np.arange(7))  # type: ignore[arg-type]
    for found, expected in (
        (at_hand.learnt(both), network.outcomes(subnets)),
        (at_hand.judged(both), network.test_outcomes(subnets)),
    ):
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.losses, expected.losses)
        np.testing.assert_array_equal(found.covariance, expected.covariance)
        assert found.baseline == expected.baseline
