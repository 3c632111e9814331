"""The solver's answers to limits of a few swept constraints, each of which answers further limits as well."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.search.constrained.question import WITHIN
from autotailor.search.constrained.solver import Best, Solver

APART = 1e-8
"""Values that differ by this share of the range of their metric count as equal."""


class Answers:
    """Answers at *corners*: limits ``[swept]`` of the swept constraints, beside fixed limits of the others.

    A SubNet that is the best at one corner is the best at every tighter corner that allows it; where nothing keeps the
    limits of a corner, nothing keeps tighter ones.

    Args:
        solver: of the objective and all constraints.
        limits: of all constraints ``[constraints]``, infinite without; a swept one has its limit here, too.
        swept: the constraints that the corners limit.

    Attributes:
        least: a value of each swept constraint that no SubNet is below ``[swept]``.
        highest: a limit of each swept constraint that lets all SubNets through, or the fixed limit ``[swept]``.
        range: the difference of both without the fixed limit, above 0 ``[swept]``.
        apart: values that differ by this count as equal ``[swept]``. It is above what the solver takes for rounding,
            which a SubNet may exceed its limit by: at a limit that is lower by this, the same SubNet is no answer.
        worst: the lowest objective of the space, before its link.
        bests: the answers.
        corners: ``[n, swept]``, where each answer was asked for.
        spent: ``[n, swept]``, what the SubNet of each answer spends.
        linear: ``[n]``, the objective of each answer, before its link.
    """

    def __init__(self, solver: Solver, limits: FloatArray, swept: Sequence[int]) -> None:
        self.solver, self.limits, self.swept = solver, limits, list(swept)
        program = solver.program
        owned = [program.owners == constraint for constraint in swept]
        lowest = program.constants + program.reduced_costs.least
        self.least = np.array([lowest[rows].max() for rows in owned])
        highest = np.array([program.highest[rows].max() for rows in owned])
        self.range = np.maximum(highest - self.least, 1e-300)
        self.highest = np.minimum(highest, limits[self.swept])
        size = np.maximum(np.abs(self.least), np.abs(self.highest))
        self.apart = np.maximum(APART * self.range, 4 * WITHIN * size)
        self.worst = program.constant - float(program.reduced_loss.least[0]) - program.range_of_loss
        self.bests: list[Best] = []
        self.linear = np.empty(0)
        self.corners, self.spent, self._impossible = (np.empty((0, len(self.swept))) for _ in range(3))

    def at(self, corner: FloatArray) -> int | None:
        """The number of the best SubNet at a corner; None where no SubNet was found that keeps its limits."""
        if (self._impossible >= corner).all(axis=1).any():
            return None
        answered = np.flatnonzero((self.corners >= corner).all(axis=1) & (self.spent <= corner).all(axis=1))
        if len(answered):
            return int(answered[0])
        limits = self.limits.copy()
        limits[self.swept] = corner
        best = self.solver.within(limits)
        if best is None:
            self._impossible = np.vstack([self._impossible, corner])
            return None
        spent = [self.solver.constraints[c].metric.predict(best.row)[0] for c in self.swept]
        self.bests.append(best)
        self.linear = np.append(self.linear, best.linear)
        self.corners, self.spent = np.vstack([self.corners, corner]), np.vstack([self.spent, spent])
        return len(self.bests) - 1

    def within(self, corner: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the SubNet of each answer keeps the limits of a corner ``[n]``."""
        return np.asarray((self.spent <= corner).all(axis=1))

    def difference(self, lower: float, upper: float) -> float:
        """How much a bound of the objective exceeds an objective, both before the link, in the unit; at least 0."""
        low, high = self.solver.objective.link.value(np.array([lower, max(lower, upper)]))
        return float(high - low)
