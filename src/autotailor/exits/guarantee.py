"""A guarantee for finitely many pictures: thresholds that lose at most epsilon against the last exit, surely.

The loss of a picture is l = right(last exit) - right(the exit that answers), from -1 to 1. Learn then Test
(Angelopoulos, Bates, Candès, Jordan, Lei 2021, arXiv:2110.01052) tests the hypothesis E[l] >= epsilon of each choice
of thresholds; where it is rejected, E[l] < epsilon. One half of the pictures puts the choices in an order, and the
other half tests them in this order until the first hypothesis stands, each at level delta (Pareto Testing,
Laufer-Goldshtein, Fisch, Barzilay, Jaakkola 2023, arXiv:2210.07913). The probability that any rejection is wrong is
then at most delta.

The p-value is 1 / max_t K_t of the wealth K_t = prod_(i <= t) (1 + lambda_i (epsilon - l_i)) of a bet against the
hypothesis, a supermartingale under it (Ville's inequality; Waudby-Smith, Ramdas 2024, arXiv:2010.09686). lambda_i knows
only the pictures before i. Hoeffding's and Bentkus's bounds need losses from 0 to 1, where pictures that an exit gets
right and the last one wrong count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotailor.exits.answers import Answers, Costs, Floats, Policy
from autotailor.exits.thresholds import front, safe

LEAST_WEALTH = 0.25
"""The share of its wealth that a bet keeps at the worst loss."""
MOST_CHOICES = 40
"""Of a front, about as many choices are tested; their neighbours differ by single pictures."""


@dataclass(frozen=True)
class Guarantee:
    """``epsilon``: the largest mean loss against the last exit; ``delta``: the probability that it is larger."""

    epsilon: float = 0.01
    delta: float = 0.05


def p_value(losses: Floats, epsilon: float, delta: float) -> float:
    """The p-value of the hypothesis that the mean of losses in [-1, 1], in random order ``[n]``, is at least epsilon.

    ``delta`` is the level that the bets aim at; the p-value holds at any level.
    """
    before = np.arange(1, len(losses) + 1)
    sums, squares = np.cumsum([0.0, *losses[:-1]]), np.cumsum([0.25, *np.square(losses[:-1])])
    mean = sums / before
    variance = np.maximum(squares / before - mean**2, 0.25 / before)
    gain = np.maximum(epsilon - mean, 0.0)
    most = (1 - LEAST_WEALTH) / (1 - epsilon)
    best = gain / (variance + gain**2)
    aimed = np.sqrt(2 * np.log(1 / delta) / (variance * len(losses)))
    bets = np.minimum(np.maximum(best, aimed), most)
    wealth = np.exp(np.cumsum(np.log1p(bets * (epsilon - losses))))
    return float(min(1.0, 1.0 / max(wealth.max(initial=1.0), 1.0)))


def guaranteed(answers: Answers, costs: Costs, guarantee: Guarantee, seed: int = 0) -> Policy | None:
    """The thresholds that cost least in the mean among those that lose at most epsilon with probability 1 - delta.

    Args:
        answers: about pictures that neither trained nor chose the exits.
        costs: of segments and heads.
        guarantee: epsilon and delta.
        seed: of the order of the pictures.

    Returns:
        The thresholds, with what they are worth on the half that tested them; None where none pass that have exits.
    """
    order = np.random.default_rng(seed).permutation(len(answers))
    first, second = (answers.of(half) for half in np.array_split(order, 2))
    every = front(first, costs)
    choices = every[:: max(1, len(every) // MOST_CHOICES)]

    def losses(policy: Policy, of: Answers) -> Floats:
        return np.asarray(of.right[:, -1] - policy.right(of))

    def evidence(policy: Policy) -> float:
        return p_value(losses(policy, first), guarantee.epsilon, guarantee.delta)

    passed: list[Policy] = []
    for policy in sorted((policy for policy in choices if any(policy.present)), key=evidence):
        if p_value(losses(policy, second), guarantee.epsilon, guarantee.delta) > guarantee.delta:
            break
        passed.append(policy.on(second, costs))
    return min(passed, key=lambda policy: safe(policy, len(second)), default=None)
