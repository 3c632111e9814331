"""Evaluations along the front: the SubNets that draws from the posterior hold for the best (Thompson sampling).

Each draw of the model is a possible truth, a sum of terms, whose best SubNet at each budget a search finds. A round
draws as many truths as it evaluates SubNets, and goes from budget to budget. A SubNet that is likely to be the best is
drawn often, and one that is known well and worse is not.

The regret of the present choice at a budget is how much more accurate the best SubNet of a draw is than the choice
under the same draw. The rounds end when the mean regret over draws is within the tolerance at every budget, or when all
draws hold SubNets for the best that are evaluated already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.prediction.model import AccuracyModel, fit

Best = Callable[[Metric], IntArray]
"""From a metric of accuracy to choice indices of the most accurate SubNet at each budget ``[budgets, variables]``."""
Evaluate = Callable[[Sequence[SubNet]], Mapping[str, Outcome]]
"""Evaluates SubNets: id to answers and losses."""

DRAWS = 8  # in each round


@dataclass(frozen=True, eq=False)
class Rounds:
    """What the rounds led to.

    Attributes:
        model: after all evaluations.
        outcomes: all evaluations.
        choice: the SubNet that the model predicts best at each budget ``[budgets, variables]``.
        draws: from the model, each a possible truth.
        offers: the best SubNet of each draw at each budget ``[draws, budgets, variables]``.
        evaluated: number of SubNets that the rounds evaluated.
    """

    model: AccuracyModel
    outcomes: Outcomes
    choice: IntArray
    draws: Sequence[Metric]
    offers: Sequence[IntArray]
    evaluated: int

    @property
    def regret(self) -> FloatArray:
        """Accuracy that the predicted choice loses at each budget ``[budgets]``, mean over the draws, points."""
        return _regret(self.choice, self.draws, self.offers)

    def remaining(self, chosen: Mapping[str, SubNet]) -> dict[str, float]:
        """How much more accurate another SubNet of each budget is expected to be than the chosen one, points.

        That is the mean over the draws of what the best SubNet of each has above the chosen one.

        Args:
            chosen: name of each budget, in the order of ``choice``, to its SubNet.
        """
        rows = np.array([subnet.to_array() for subnet in chosen.values()], dtype=np.int64)
        return dict(zip(chosen, _regret(rows, self.draws, self.offers).tolist(), strict=True)) if chosen else {}

    def metrics(self) -> dict[str, float]:
        """Metrics for tracking: the number of evaluations, and the largest regret of the choice at any budget."""
        return {"evaluations": self.evaluated, **({"regret": float(self.regret.max())} if len(self.regret) else {})}


def evaluate_along_front(
    outcomes: Outcomes,
    cost: Metric,
    best: Best,
    evaluate: Evaluate,
    count: int,
    tolerance: float,
    random: np.random.Generator,
) -> Rounds:
    """Evaluates SubNets along the front, until the choice at each budget is certain enough.

    Args:
        outcomes: evaluations so far.
        cost: see ``fit``.
        best: the most accurate SubNet at each budget.
        evaluate: evaluates SubNets.
        count: largest number of evaluations; without budgets there are none.
        tolerance: largest mean regret at which the rounds end, points of accuracy.
        random: of the draws.
    """
    evaluated = 0
    while True:
        model = fit(outcomes, cost)
        choice = best(model.metric())
        if not len(choice):
            return Rounds(model, outcomes, choice, (), (), evaluated)
        draws = [model.draw(random) for _ in range(DRAWS)]
        offers = [best(draw) for draw in draws]
        rounds = Rounds(model, outcomes, choice, draws, offers, evaluated)
        fresh = _fresh(offers, outcomes)[: count - evaluated]
        if not fresh or rounds.regret.max() <= tolerance:
            return rounds
        outcomes = outcomes.with_more(fresh, evaluate(fresh))
        evaluated += len(fresh)


def _regret(choice: IntArray, draws: Sequence[Metric], offers: Sequence[IntArray]) -> FloatArray:
    """Mean over draws of the accuracy that a choice loses at each budget ``[budgets]``, points."""
    if not draws:
        return np.empty(0)
    losses = [draw.predict(offer) - draw.predict(choice) for draw, offer in zip(draws, offers, strict=True)]
    return np.asarray(np.maximum(np.mean(losses, axis=0), 0.0))


def _fresh(offers: Sequence[IntArray], outcomes: Outcomes) -> list[SubNet]:
    """One SubNet of each draw that is not evaluated, at one budget after the other; at most one for each draw."""
    evaluated = {row.tobytes() for row in outcomes.indices}
    evaluated.add(SubNet(outcomes.space, tuple(v.default for v in outcomes.space)).to_array().tobytes())
    fresh: list[SubNet] = []
    for offer in offers:
        rows = np.roll(offer, -len(evaluated), axis=0)
        new = next((row for row in rows if row.tobytes() not in evaluated), None)
        if new is not None:
            evaluated.add(new.tobytes())
            fresh.append(SubNet.from_array(outcomes.space, new))
    return fresh
