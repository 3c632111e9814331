"""The SubNet, the exits and the thresholds of each budget, chosen together among the exported SubNets of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.exits.answers import LAST, Answers, Costs, Floats, Policy
from autotailor.exits.thresholds import IN_ONE_TABLE, QUANTILES, front, within
from autotailor.search.budgets import EXPECTED, WORST, read_budget
from autotailor.search.robust.forecast import ROUNDING
from autotailor.statistics import clustered_mean

FOLDS = 5
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Budgets of the expected cost, as shares of what the costliest of the SubNets takes without exits."""
FEWER = 24
"""Thresholds of each of four exits, where they are chosen once for each fold."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An exported SubNet with its exits.

    Attributes:
        name: of the export.
        exits: names of its exits, the last one left out.
        costs: of its segments and heads; without heads where it has no exits.
        validation, test: what its exits answer.
        energy: millijoules of its segments and heads, where they are known.
    """

    name: str
    exits: tuple[str, ...]
    costs: Costs
    validation: Answers
    test: Answers
    energy: Costs | None = None

    @property
    def alone(self) -> Candidate:
        """The same SubNet without exits."""
        energy = self.energy and self.energy.only(())
        return Candidate(self.name, (), self.costs.only(()), self.validation.only(()), self.test.only(()), energy)


@dataclass(frozen=True, eq=False)
class Choice:
    """What is chosen for a budget.

    Attributes:
        candidate: the SubNet with its exits.
        policy: the thresholds, with what they are worth on the validation pictures that chose them.
        folded: how right each validation picture is answered with thresholds that the other folds chose, ``[n]``.
    """

    candidate: Candidate
    policy: Policy
    folded: Floats

    @property
    def right(self) -> Floats:
        """How right the answer to each test picture is, ``[n]``."""
        return self.policy.right(self.candidate.test)


def folds(pictures: int, groups: npt.NDArray[np.int64], seed: int = 0) -> npt.NDArray[np.intp]:
    """The fold of each picture; pictures of one base picture are in one fold."""
    _, group = np.unique(groups, return_inverse=True)
    of_group = np.random.default_rng(seed).permutation(group.max() + 1) % FOLDS if pictures else np.zeros(0)
    return np.asarray(of_group[group], dtype=np.intp)


class Chooser:
    """Chooses for several budgets; the fronts of all folds are computed once."""

    def __init__(self, candidate: Candidate, groups: npt.NDArray[np.int64], worst: float = np.inf) -> None:
        """``groups``: base picture of each validation picture; ``worst``: what a single picture may cost."""
        self._candidate, self._fold = candidate, folds(len(candidate.validation), groups)
        seen, costs = candidate.validation, candidate.costs
        most = QUANTILES if len(costs.heads) <= IN_ONE_TABLE else FEWER
        self._front = front(seen, costs, worst=worst)
        self._fronts = [front(seen.of(self._fold != fold), costs, worst=worst, most=most) for fold in range(FOLDS)]

    def within(self, budget: float) -> Choice | None:
        """The most accurate thresholds within a budget of the expected cost; None where there are none."""
        seen = self._candidate.validation
        policy = within(self._front, budget, len(seen))
        if policy is None:
            return None
        folded = np.zeros(len(seen))
        for fold, policies in enumerate(self._fronts):
            own = self._fold == fold
            chosen = within(policies, budget, int((~own).sum())) or policy
            folded[own] = chosen.right(seen.of(own))
        return Choice(self._candidate, policy, folded)


def choose(choosers: Sequence[Chooser], budget: float) -> Choice | None:
    """The choice whose thresholds are best on pictures that did not choose them; None where none keeps the budget.

    Of equals the choice is one without exits, and of these the cheapest.
    """
    choices = [choice for chooser in choosers if (choice := chooser.within(budget)) is not None]
    return max(choices, key=_merit, default=None)


def _merit(choice: Choice) -> tuple[float, bool, float]:
    return float(choice.folded.mean()), not choice.candidate.exits, -choice.policy.expected


def read_limits(budget: Mapping[str, float | str], largest: float, unit: str) -> tuple[float, float]:
    """The expected and the worst cost of a budget (``search.budgets.of_exits``) in a unit; infinite where left out."""
    expected, worst = (
        read_budget(budget[key], largest, unit) * (1 + ROUNDING) if key in budget else np.inf
        for key in (EXPECTED, WORST)
    )
    return expected, worst


def by_budget(
    candidates: Sequence[Candidate],
    validation_groups: npt.NDArray[np.int64],
    test_groups: npt.NDArray[np.int64],
    shares: Sequence[float] = SHARES,
    named_budgets: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> dict[str, dict[str, Any]]:
    """For each budget what is chosen with exits and without, and what both are worth on test pictures.

    Args:
        candidates: SubNets with exits.
        validation_groups: base picture of each validation picture.
        test_groups: base picture of each test picture.
        shares: budgets of the expected cost, as shares of what the costliest of the SubNets takes without exits.
        named_budgets: further budgets of the expected and the worst cost, by name.

    Returns:
        Plain values by name of the budget, as ``60 %``: ``share`` and ``budget``; ``with`` and ``without``, each as
        ``described`` or None; where there are both, ``gain``, points of accuracy on the same test pictures, and
        ``gain_error``.
    """
    largest = max(each.costs.whole for each in candidates)
    limits = {f"{share:.0%}".replace("%", " %"): (share * largest * (1 + ROUNDING), np.inf) for share in shares}
    choosers: dict[float, tuple[list[Chooser], list[Chooser]]] = {}
    rows = {}
    for name, (budget, worst) in (limits | dict(named_budgets)).items():
        if worst not in choosers:
            whole = [Chooser(each.alone, validation_groups, worst) for each in candidates]
            choosers[worst] = [*(Chooser(each, validation_groups, worst) for each in candidates), *whole], whole
        choices = [choose(each, budget) for each in choosers[worst]]
        share = budget / (1 + ROUNDING) / largest
        row: dict[str, Any] = {"share": share, "budget": share * largest}
        row |= {
            key: choice and described(choice, test_groups)
            for key, choice in zip(("with", "without"), choices, strict=True)
        }
        if choices[0] is not None and choices[1] is not None:
            gain, error = clustered_mean(choices[0].right - choices[1].right, test_groups)
            row |= {"gain": 100 * gain, "gain_error": 100 * error}
        rows[name] = row
    return rows


def described(choice: Choice, groups: npt.NDArray[np.int64]) -> dict[str, Any]:
    """A choice as plain values; accuracies in percent.

    ``accuracy`` and ``expected`` are of test pictures, ``accuracy_folds`` of validation pictures that other ones chose
    thresholds for, ``expected_chosen`` of those that chose them. ``energy`` is that of test pictures, in mJ, or None.
    ``leave`` is the share of test pictures that leaves at each exit, the last one included.
    """
    candidate, policy = choice.candidate, choice.policy
    seen = policy.on(candidate.test, candidate.costs)
    mean, error = clustered_mean(choice.right, groups)
    left = np.bincount(policy.leave(candidate.test.confidence), minlength=len(policy.thresholds) + 1)
    energy = candidate.energy and {
        "expected": float(policy.paid(candidate.test, candidate.energy).mean()),
        "worst": policy.furthest(candidate.energy),
    }
    return {
        "name": candidate.name,
        "thresholds": dict(zip(candidate.exits, policy.thresholds, strict=True)),
        "accuracy": 100 * mean,
        "accuracy_error": 100 * error,
        "accuracy_folds": 100 * float(choice.folded.mean()),
        "expected": seen.expected,
        "expected_chosen": policy.expected,
        "worst": policy.worst,
        "energy": energy,
        "leave": dict(zip((*candidate.exits, LAST), (left / len(candidate.test)).tolist(), strict=True)),
    }


def failure_auroc(confidence: Floats, right: Floats) -> float:
    """How well confidence ranks right answers before wrong ones, 0.5 by chance; NaN where all are right or wrong.

    Calibration does not say whether thresholds work; this does (arXiv:2508.21495).
    """
    good, bad = confidence[right >= 0.5], confidence[right < 0.5]
    if not len(good) or not len(bad):
        return float("nan")
    above = (good[:, None] > bad[None]).mean() + 0.5 * (good[:, None] == bad[None]).mean()
    return float(above)
