"""Answers sets of limits one after another, and remembers the SubNets that were met."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, largest, smallest, stack
from autotailor.search.constrained import relaxation
from autotailor.search.constrained.branches import Bounds, branch
from autotailor.search.constrained.cliques import Reduced, best, reduce
from autotailor.search.constrained.program import Constraint, Program
from autotailor.search.constrained.question import WITHIN, Question, sizes
from autotailor.search.constrained.relaxation import Known

VECTORS = 8
"""Multipliers whose bounds each node of the branch and bound keeps."""
TIE = 1e-10
"""Losses that differ by this share of their range, and excesses that differ by it, count as equal."""


@dataclass(frozen=True, eq=False)
class Best:
    """The SubNet with the highest objective within limits that are as near as possible to the limits asked for.

    Attributes:
        row: choice indices ``[variables]``.
        linear: the objective of the SubNet, before its link.
        bound: no SubNet within ``limits`` has a higher objective, before its link.
        limits: ``[constraints]``, those asked for where a SubNet keeps them.
        raised: by what share of their sizes the limits were raised.
        raised_bound: no SubNet keeps limits that are raised by a smaller share.
    """

    row: IntArray
    linear: float
    bound: float
    limits: FloatArray
    raised: float = 0.0
    raised_bound: float = 0.0


@dataclass(frozen=True, eq=False)
class _Incumbent:
    """The best SubNet so far.

    Attributes:
        row: choice indices ``[variables]``.
        loss: negated objective, without its constant.
        bound: no SubNet within the limits has a lower loss.
    """

    row: IntArray
    loss: float
    bound: float


class Solver:
    """Answers sets of limits over one objective and some constraints.

    Args:
        objective: to be maximised.
        constraints: whose limits each question gives.
        seconds: of CPU, for each set of limits; where they are over, the best SubNet so far is the answer.
        gap: that is good enough, in the unit of the objective.
        max_table: largest table, in entries.

    Raises:
        SearchError: the tables of the terms are too large.
    """

    def __init__(
        self,
        objective: Metric,
        constraints: Sequence[Constraint],
        seconds: float = 30.0,
        gap: float = 0.0,
        max_table: int = 200_000,
    ) -> None:
        self.objective, self.constraints, self.seconds, self.gap = objective, tuple(constraints), seconds, gap
        self.program = Program(objective, constraints, max_table)
        ends = stack([largest(objective.space), smallest(objective.space)])
        self.pool = Known(self.program, np.unique(ends, axis=0))

    def within(self, limits: FloatArray) -> Best | None:
        """The best SubNet within limits ``[constraints]``, infinite without; None where none was found."""
        incumbent = self._within(Question.of(self.program, limits))
        return None if incumbent is None else self._best(incumbent, limits)

    def best(self, limits: FloatArray) -> Best:
        """The answer to limits ``[constraints]``, infinite where a constraint has none."""
        question = Question.of(self.program, limits)
        incumbent = self._within(question)
        if incumbent is not None:
            return self._best(incumbent, limits)
        share, bound = self._nearest(question)
        raised = np.where(np.isinf(limits), limits, limits + share * sizes(limits))
        incumbent = self._within(Question.of(self.program, raised))
        assert incumbent is not None  # a known SubNet keeps the nearest limits
        return self._best(incumbent, raised, share, bound)

    def _best(self, leader: _Incumbent, limits: FloatArray, raised: float = 0.0, raised_bound: float = 0.0) -> Best:
        constant = self.program.constant
        return Best(leader.row, constant - leader.loss, constant - leader.bound, limits, raised, max(0.0, raised_bound))

    def _within(self, question: Question) -> _Incumbent | None:
        """The best SubNet within the limits; None where none was found."""
        program, end = self.program, time.process_time() + self.seconds
        if not len(question.rows):
            return self._free()
        if not self._is_relaxation_feasible(question):
            return None
        vectors = relaxation.of_loss(question, self.pool).vectors[:VECTORS]
        sums = Bounds.of(self._reduced(question, vectors, is_loss=True), question.reduced)
        tie = TIE * program.range_of_loss
        incumbent = self._incumbent(question)
        value = np.inf if incumbent is None else incumbent.loss
        ending = branch(program.cliques, sums, value, lambda loss: loss - max(tie, self._gap(loss)), end)
        if ending.row is not None:
            self.pool.add(ending.row)
            incumbent = _Incumbent(ending.row, ending.value, ending.bound)
        if incumbent is None:
            return None
        return replace(incumbent, bound=incumbent.loss if ending.bound >= incumbent.loss - 2 * tie else ending.bound)

    def _free(self) -> _Incumbent:
        """The best SubNet without limits."""
        reduced = self.program.reduced_loss
        row = best(self.program.cliques, reduced.excess[0])
        self.pool.add(row)
        return _Incumbent(row, float(reduced.least[0]), float(reduced.least[0]))

    def _is_relaxation_feasible(self, question: Question) -> bool:
        """Whether a mixture of known SubNets keeps the limits; SubNets that bring it nearer become known."""
        if (question.largest_excesses(self.pool.values) <= WITHIN).any():
            return True
        return bool(relaxation.of_excess(question, self.pool, enough=0.0).bounds.max(initial=-np.inf) <= WITHIN)

    def _nearest(self, question: Question) -> tuple[float, float]:
        """The least share of the limits by which they must be raised, as far as it was found, and its lower bound."""
        end = time.process_time() + self.seconds
        vectors = relaxation.of_excess(question, self.pool).vectors[:VECTORS]
        bounds = self._reduced(question, np.concatenate([vectors, np.eye(len(question.rows))]), is_loss=False)
        least = float(question.largest_excesses(self.pool.values).min())
        ending = branch(self.program.cliques, Bounds.of(bounds), least, lambda excess: excess - TIE, end)
        if ending.row is not None:
            self.pool.add(ending.row)
        return max(0.0, ending.value), ending.bound

    def _incumbent(self, question: Question) -> _Incumbent | None:
        """The best known SubNet within the limits; None where no known SubNet keeps them."""
        kept = np.flatnonzero(question.largest_excesses(self.pool.values) <= WITHIN)
        if not len(kept):
            return None
        index = kept[int(np.argmin(self.pool.losses[kept]))]
        return _Incumbent(self.pool.rows[index], float(self.pool.losses[index]), -np.inf)

    def _reduced(self, question: Question, vectors: FloatArray, *, is_loss: bool) -> Reduced:
        """Sums that bound the loss, of which the last is the loss itself, or the largest excess."""
        costs = question.costs
        weights = vectors @ costs
        constants = vectors @ question.constants
        if is_loss:
            weights = np.vstack([weights + self.program.loss, self.program.loss])
            constants = np.append(constants, 0.0)
        reduced = reduce(self.program.cliques, weights)
        return Reduced(reduced.least + constants, reduced.excess)

    def _gap(self, value: float) -> float:
        """The gap that is good enough as a difference of losses, beside a loss."""
        if not self.gap or not np.isfinite(value):
            return 0.0
        linear = np.array([self.program.constant - value])
        link = self.objective.link
        return float((link.linear(link.value(linear) + self.gap) - linear)[0])
