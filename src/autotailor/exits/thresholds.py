"""Thresholds of exits, chosen exactly among quantiles of confidence.

Exit e has the thresholds q_0 = 0 < q_1 < ... < q_G, quantiles of its confidence, and index G + 1 where the exit is not
there. A picture of confidence c has the bin b_e = #{g: q_g <= c} and leaves at exit e, if it gets there, where
b_e > t_e for the threshold's index t_e. With the histogram H of the bins of all pictures,

    stays[t_1 .. t_e] = sum of H[b_1 .. b_e] over b_1 <= t_1, ..., b_e <= t_e

is a cumulative sum over each axis, and so is the sum of how right an exit is over the pictures that leave there. One
pass over the pictures therefore gives accuracy, expected cost and its second moment of every combination of thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from autotailor.exits.answers import Answers, Costs, ExitError, Floats, Policy

MOST_EXITS, QUANTILES = 4, 64
IN_ONE_TABLE = 3
"""Exits whose combinations fit into one table; with more, each threshold of the first exit has its own table."""
DIGITS = 12
"""Digits of an accuracy; behind them stand rounding errors of sums."""
SURE = 1.645
"""Standard errors below a budget that an expected cost stays, so that it holds in 19 of 20 cases."""


def grids(confidence: Floats, most: int = QUANTILES) -> list[Floats]:
    """The thresholds of each exit, rising from 0: quantiles at equal shares of the pictures ``[n, exits]``."""
    levels = np.arange(1, most - 1) / (most - 1)
    quantiles = [np.quantile(column, levels, method="higher") for column in confidence.T]
    return [np.unique(np.concatenate([[0.0], own])) for own in quantiles]


def front(answers: Answers, costs: Costs, *, worst: float = np.inf, most: int = QUANTILES) -> list[Policy]:
    """The thresholds of which no others are at least as accurate for less, by what is expected surely (``safe``).

    Args:
        answers: about the pictures on which thresholds are chosen.
        costs: of segments and heads.
        worst: what the picture that goes furthest may cost.
        most: thresholds of each exit.

    Returns:
        The thresholds by rising cost and accuracy; empty where the worst cost keeps out all of them.

    Raises:
        ExitError: there are more than four exits, or no pictures.
    """
    exits = answers.confidence.shape[1]
    if exits > MOST_EXITS or not len(answers):
        raise ExitError(
            f"thresholds of {exits} exits on {len(answers)} pictures: expected at most {MOST_EXITS} exits, and pictures"
        )
    if not exits:
        return [Policy((), 0.0, 0.0, 0.0, costs.whole).on(answers, costs)] if costs.whole <= worst else []
    steps = grids(answers.confidence, most)
    best: list[Policy] = []
    for held in range(len(steps[0]) + 1) if exits > IN_ONE_TABLE else [None]:
        table = _Table(answers, costs, steps, held)
        best += table.front(worst)
    return undominated(best, len(answers))


def safe(policy: Policy, pictures: int) -> float:
    """A cost that the mean over as many unseen pictures exceeds in one of 20 cases.

    Both means, that of the choice and that of the unseen pictures, have an error of spread / sqrt(pictures).
    """
    return policy.expected + SURE * policy.spread * float(np.sqrt(2 / pictures))


def undominated(policies: Sequence[Policy], pictures: int) -> list[Policy]:
    """The policies of which no other is at least as accurate for less, by rising cost."""
    best: list[Policy] = []
    for policy in sorted(policies, key=lambda each: (safe(each, pictures), -each.accuracy)):
        if not best or policy.accuracy > best[-1].accuracy:
            best.append(policy)
    return best


def within(policies: Sequence[Policy], budget: float, pictures: int) -> Policy | None:
    """The most accurate of a front whose expected cost keeps a budget surely; None where none does."""
    return next((policy for policy in reversed(policies) if safe(policy, pictures) <= budget), None)


class _Table:
    """All combinations of thresholds: arrays with one axis for each exit, indexed by the threshold."""

    def __init__(self, answers: Answers, costs: Costs, steps: Sequence[Floats], held: int | None) -> None:
        """``held``: the index of the first exit's threshold where the table has that one alone."""
        self.steps, self.count, self.held = steps, len(answers), held
        self.sizes = [len(grid) + 1 for grid in steps]
        bins = [
            np.searchsorted(grid, column, "right") for grid, column in zip(steps, answers.confidence.T, strict=True)
        ]
        if held is not None:
            bins[0], self.sizes[0] = (bins[0] > held).astype(np.intp), 1
        self._answers, self._bins, self._costs = answers, bins, costs

    def front(self, worst: float) -> Iterator[Policy]:
        """The best combinations whose worst cost is at most ``worst``."""
        accuracy, first, second, furthest = self._sums()
        accuracy = accuracy.round(DIGITS)
        spread = np.sqrt(np.maximum(second - first**2, 0.0))
        safely = first + SURE * spread * np.sqrt(2 / self.count)
        allowed = np.flatnonzero(furthest.ravel() <= worst)
        order = allowed[np.lexsort((-accuracy.ravel()[allowed], safely.ravel()[allowed]))]
        reached = np.maximum.accumulate(accuracy.ravel()[order])
        for place in order[np.diff(reached, prepend=-1.0) > 0]:
            at = np.unravel_index(place, accuracy.shape)
            numbers = (float(table[at]) for table in (accuracy, first, spread, furthest))
            yield Policy(tuple(self._threshold(e, int(index)) for e, index in enumerate(at)), *numbers)

    def _threshold(self, e: int, index: int) -> float | None:
        index = self.held if self.held is not None and e == 0 else index
        grid = self.steps[e]
        return float(grid[index]) if index < len(grid) else None

    def _sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Accuracy, first and second moment of the cost, and the worst cost of each combination."""
        exits, right = len(self.sizes), self._answers.right
        shape = tuple(self.sizes)
        accuracy, first, second = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        worst = np.full(shape, np.nan)
        reach, heads = np.ones((1,) * exits), np.zeros((1,) * exits)
        for e in range(exits):
            axis = self._along(e, self._indices(e))
            heads = heads + np.where(axis < len(self.steps[e]), self._costs.heads[e], 0.0)
            paid = sum(self._costs.segments[: e + 1]) + heads
            stays = self._stays(e, np.ones(self.count))
            leaves = reach - stays
            of_right = self._stays(e, right[:, e])
            accuracy += self._all(e, right[:, e]) - of_right
            first, second = first + leaves * paid, second + leaves * paid**2
            worst = np.where(np.isnan(worst) & (axis == 0), paid, worst)
            reach = stays
        paid = self._costs.whole + heads
        accuracy += self._stays(exits - 1, right[:, exits])
        worst = np.where(np.isnan(worst), paid, worst)
        return accuracy, first + reach * paid, second + reach * paid**2, worst

    def _indices(self, e: int) -> npt.NDArray[np.intp]:
        return np.array([self.held]) if self.held is not None and e == 0 else np.arange(self.sizes[e])

    def _along(self, e: int, values: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        return values.reshape([-1 if axis == e else 1 for axis in range(len(self.sizes))])

    def _histogram(self, e: int, weights: Floats) -> Floats:
        """Mean of weights over the bins of the exits up to one: ``[t_1, ..., t_e]``."""
        shape = [2 if size == 1 else size for size in self.sizes[: e + 1]]
        flat = np.ravel_multi_index(self._bins[: e + 1], shape)
        histogram = np.bincount(flat, weights, minlength=int(np.prod(shape))).reshape(shape) / self.count
        return histogram[:1] if self.held is not None else histogram

    def _stays(self, e: int, weights: Floats) -> Floats:
        """Sum of weights over the pictures that no exit up to one keeps."""
        sums = self._histogram(e, weights)
        for axis in range(e + 1):
            sums = np.cumsum(sums, axis=axis)
        return sums.reshape(sums.shape + (1,) * (len(self.sizes) - e - 1))

    def _all(self, e: int, weights: Floats) -> Floats | float:
        """Sum of weights over the pictures that get to an exit."""
        return float(weights.mean()) if e == 0 else self._stays(e - 1, weights)


def dominated(answers: Answers) -> tuple[int, ...]:
    """The exits that are not more accurate than an earlier one, so that they only cost (AdaScale's exit 4)."""
    accuracy = answers.right.mean(axis=0)[:-1]
    return tuple(e for e in range(1, len(accuracy)) if accuracy[e] <= accuracy[:e].max())
