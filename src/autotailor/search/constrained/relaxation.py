"""Multipliers of the limits, by column generation (Dantzig and Wolfe, 1960).

For multipliers u_r >= 0 of the rows, with relative excesses x_r(s) = (cost of row r - limit) / |limit|,

    g(u) = min over SubNets s of    loss(s) + sum_r u_r x_r(s)

is a lower bound of the loss of every SubNet within the limits. The weighted sum is again a sum of tables over the same
cliques, so that one pass of messages gives g(u) and the SubNet that attains it. The multipliers with the highest bound
are the duals of a small linear program, which mixes the known SubNets such that the mixture keeps the limits and loses
least; the SubNet of each g(u) joins the known ones, until none improves the mixture. All sets of budgets share the
known SubNets, so that a neighbour of a set that was answered needs few passes.

Where no mixture keeps the limits, or the nearest limits are asked for, the loss is left out, and the mixture whose
largest relative excess is least takes its place; its multipliers add up to 1, and g(u) bounds the largest excess of
every SubNet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.search.constrained.cliques import best, reduce
from autotailor.search.constrained.program import Program
from autotailor.search.constrained.question import WITHIN, Question

PASSES = 200
"""Passes of messages for one set of budgets at most; some ten are usual."""
TOLERANCE = 1e-5
"""The mixture is good enough where this share of the range of losses is left between it and the bound."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers that were tried.

    Attributes:
        vectors: ``[k, rows]``, those with the highest bounds first.
        bounds: g(u) of each ``[k]``.
    """

    vectors: FloatArray
    bounds: FloatArray


def of_loss(question: Question, pool: Known) -> Multipliers:
    """Multipliers that bound the loss; some mixture of known SubNets must keep the limits."""
    return _generate(question, pool, is_loss=True, enough=-np.inf)


def of_excess(question: Question, pool: Known, enough: float = -np.inf) -> Multipliers:
    """Multipliers that bound the largest relative excess; ends early where a mixture exceeds by ``enough`` at most."""
    return _generate(question, pool, is_loss=False, enough=enough)


def _generate(question: Question, pool: Known, *, is_loss: bool, enough: float) -> Multipliers:
    program, vectors, bounds = question.program, list[FloatArray](), list[float]()
    tolerance = TOLERANCE * program.range_of_loss if is_loss else WITHIN
    for _ in range(PASSES):
        mixture = _mixture(question, pool, is_loss=is_loss)
        if mixture is None:
            break
        value, vector = mixture
        weights = vector @ question.costs + (program.loss if is_loss else 0.0)
        reduced = reduce(program.cliques, weights[None])
        vectors.append(vector)
        bounds.append(float(reduced.least[0] + vector @ question.constants))
        is_new = pool.add(best(program.cliques, reduced.excess[0]))
        if not is_new or value - max(bounds) <= tolerance or value <= enough:
            break
    order = np.argsort(-np.array(bounds), kind="stable")
    shape = (len(vectors), len(question.rows))
    return Multipliers(np.array(vectors).reshape(shape)[order], np.array(bounds)[order])


def _mixture(question: Question, pool: Known, *, is_loss: bool) -> tuple[float, FloatArray] | None:
    """The loss, or the largest excess, of the best mixture, and its multipliers.

    None where no mixture keeps the limits. The columns are the shares of the known SubNets and, without loss, the
    largest excess, which may be negative.
    """
    from scipy.optimize import linprog

    excesses = question.excesses(pool.values).T
    count = excesses.shape[1]
    if not is_loss:
        excesses = np.hstack([excesses, -np.ones((len(excesses), 1))])
    solution = linprog(
        pool.losses if is_loss else np.append(np.zeros(count), 1.0),
        A_ub=excesses,
        b_ub=np.zeros(len(excesses)),
        A_eq=np.append(np.ones(count), [] if is_loss else [0.0])[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * count + ([] if is_loss else [(None, None)]),
        method="highs-ds",
    )
    if solution.status != 0:
        return None
    vector = np.maximum(-solution.ineqlin.marginals, 0.0)
    return float(solution.fun), vector if is_loss else vector / vector.sum()


class Known:
    """SubNets with their losses and values.

    Attributes:
        program: the problem.
        rows: choice indices ``[n, variables]``.
        losses: negated objective of each SubNet, without its constant ``[n]``.
        values: of each SubNet ``[n, rows of the program]``.
    """

    def __init__(self, program: Program, rows: IntArray) -> None:
        self.program, self.rows = program, rows
        self.losses: FloatArray = program.losses(rows)
        self.values: FloatArray = program.values(rows)

    def add(self, row: IntArray) -> bool:
        """Adds a SubNet ``[variables]``; False where it is known already."""
        if (self.rows == row).all(axis=1).any():
            return False
        self.losses = np.append(self.losses, self.program.losses(row[None]))
        self.values = np.concatenate([self.values, self.program.values(row[None])])
        self.rows = np.concatenate([self.rows, row[None]])
        return True
