"""A trained SuperNet, and evaluations of its SubNets that are kept in journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sampled.training import Run, train

from autotailor import sensitivity
from autotailor.data.splits import DataSplits
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcome, Outcomes

VARIANT = "alternating"
JOURNAL = "accuracy_predictor"


@dataclass(frozen=True)
class Network:
    """One model and seed.

    Attributes:
        directory: of trained networks and journals, as ``sampling.py`` lays it out.
        model: name in conf/model.
        seed: of data and training.
        held_out: random SubNets that every predictor is judged by.
        pool: further random SubNets, which predictors learn from.
        overrides: of the configuration.
        variant: of its training, a name in ``sampled/variants.py``.
    """

    directory: Path
    model: str
    seed: int
    held_out: int
    pool: int
    overrides: tuple[str, ...] = ()
    variant: str = VARIANT
    _known: dict[str, dict[str, Outcome]] = field(default_factory=dict)

    @cached_property
    def run(self) -> Run:
        """Its training."""
        return Run(self.directory, self.model, self.variant, self.seed, self.overrides, 0)

    @cached_property
    def net(self) -> SuperNet:
        """The SuperNet, which is trained if it is not there."""
        return train(self.run)[0]

    @cached_property
    def data(self) -> DataSplits:
        """The splits of the seed."""
        return self.run.data

    @cached_property
    def configuration(self) -> Mapping[str, Any]:
        """That of its training."""
        return self.run.configuration

    @property
    def folder(self) -> Path:
        """Of the journals."""
        return self.run.folder

    @property
    def chance(self) -> float:
        """Share of right answers that guessing has; 0 where no SubNet guesses."""
        return 0.0

    @cached_property
    def drawn(self) -> tuple[tuple[SubNet, ...], tuple[SubNet, ...]]:
        """The held-out SubNets and the pool: distinct, uniform over the space."""
        found = sample_distinct(self.net.space, self.held_out + self.pool, np.random.default_rng(0))
        return found[: self.held_out], found[self.held_out :]

    def on_validation(self, subnets: Sequence[SubNet]) -> dict[str, Outcome]:
        """Answers and losses on the validation set, which predictors learn from."""
        return self._evaluate(subnets, "validation")

    def on_test(self, subnets: Sequence[SubNet]) -> dict[str, Outcome]:
        """Answers and losses on the test set, which judges predictors."""
        return self._evaluate(subnets, "test")

    def outcomes(self, subnets: Sequence[SubNet]) -> Outcomes:
        """SubNets as evaluated on the validation set."""
        found = self.on_validation([self.net.largest(), *subnets])
        return Outcomes.of(self.net.space, subnets, found, self.data.validation.groups, self.chance)

    def test_outcomes(self, subnets: Sequence[SubNet]) -> Outcomes:
        """SubNets as evaluated on the test set."""
        found = self.on_test([self.net.largest(), *subnets])
        return Outcomes.of(self.net.space, subnets, found, self.data.test.groups, self.chance)

    def one_hot(self, subnets: Sequence[SubNet]) -> npt.NDArray[np.float64]:
        """Choices as indicators ``[n, modifications]``."""
        return np.array(
            [
                [
                    float(i == k)
                    for v, i in zip(self.net.space, subnet.indices, strict=True)
                    for k in range(len(v.choices))
                ]
                for subnet in subnets
            ]
        )

    def _evaluate(self, subnets: Sequence[SubNet], split: str) -> dict[str, Outcome]:
        """Answers and losses by SubNet id; the journal is read where those of a SubNet are not in memory."""
        known = self._known.setdefault(split, {})
        if missing := [subnet for subnet in subnets if subnet.id not in known]:
            known.update(self._from_journal(missing, split))
        return {subnet.id: known[subnet.id] for subnet in subnets}

    def _from_journal(self, subnets: Sequence[SubNet], split: str) -> dict[str, Outcome]:
        calibration = self.configuration["finetune"]["calibration"]
        section = {**self.configuration["sensitivity"], "workers": 1}
        config = sensitivity.SensitivityConfig.from_section(section, calibration)
        images = self.data.validation if split == "validation" else self.data.test
        journal = self.folder / f"{JOURNAL}_{split}.jsonl"
        return sensitivity.evaluate(self.net, self.data, images, subnets, config, journal, JOURNAL)
