"""A Bayesian linear model of one number of each SubNet: a weighted sum of functions, and a misfit.

The weights w ~ N(m, diag(v)) belong to the functions F (``autotailor.prediction.functions``). The misfit is independent
from SubNet to SubNet, and larger for those that training favours. With noise of the variances D, the observed numbers t
~ N(F m, S) have S = F diag(v) F^T + misfit + D, and the posterior mean of the weights is m + diag(v) F^T S^-1 (t - F
m).

Training favours some SubNets: their accuracy is not what their choices let expect. Most strategies train the smallest
SubNet far more often than any other. The accuracies of the smallest SubNets at each resolution are then far from what a
sum of terms over their choices says, mostly above. A model that takes that for an effect of the choices predicts all
other SubNets worse. Therefore the smallest SubNets have a misfit of their own. The largest SubNet is favoured as well;
targets are relative to it.

The functions that are made of single drops change where the drops do. The sum of single drops is a function of the
model, and the drops are evaluations themselves. So the noise of a single modification's evaluation moves predictions
twice: as an observation, and through the function.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.metric import FloatArray, Term
from autotailor.ir.space.subnet import IntArray, SubNet, largest, smallest
from autotailor.ir.space.variable import Modification, Space
from autotailor.prediction.evaluations.observations import Part
from autotailor.prediction.evidence import MISFIT
from autotailor.prediction.functions import DROPS, DROPS_BY_RESOLUTION, DROPS_BY_VARIABLE, Group, contrasts

VARIANCE = 0.1
"""Variance of the misfit that favoured SubNets have beside that of all SubNets, in squared log-odds."""


def added(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The same sum with one term for each set of variables and gate, named after its variables."""
    tables: dict[tuple[tuple[str, ...], Gate | None], FloatArray] = {}
    for term in terms:
        key = (term.variables, term.gate)
        tables[key] = tables.get(key, 0.0) + term.table
    return tuple(
        Term(variables, np.asarray(table), gate, " and ".join(variables)) for (variables, gate), table in tables.items()
    )


@dataclass(frozen=True, eq=False)
class Prior:
    """What is assumed of one number before any evaluation.

    Attributes:
        groups: of functions.
        variances: of each group's weights, and of the misfit, in squared log-odds.
        uneven: standard deviation of a further misfit, as a share of the prior mean.
    """

    groups: tuple[Group, ...]
    variances: Mapping[str, float]
    uneven: float = 0.0


@dataclass(frozen=True, eq=False)
class LinearModel:
    """One number of SubNets after evaluations of some of them.

    Attributes:
        space: of the SubNets.
        indices: choice indices of the evaluated SubNets ``[m, variables]``.
        part: their numbers, and the variances of the noise.
        prior: of weights and misfit.
    """

    space: Space
    indices: IntArray
    part: Part
    prior: Prior

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior mean of the weights ``[functions]``."""
        return np.asarray(self._mean + self._scale * (self._columns.T @ self._solved))

    def draw(self, random: np.random.Generator) -> FloatArray:
        """A draw from the posterior of the weights ``[functions]`` (Matheron's rule)."""
        weights = self._mean + np.sqrt(self._scale) * random.standard_normal(len(self._mean))
        spread = np.sqrt(self._own)
        seen = self._columns @ weights + spread * random.standard_normal(len(spread))
        correction = np.linalg.solve(self._total, self.part.target - seen)
        return np.asarray(weights + self._scale * (self._columns.T @ correction))

    def terms(self, weights: FloatArray) -> tuple[Term, ...]:
        """The sum of all functions with given weights, with one term for each set of variables and gate."""
        return tuple(
            Term(variables, np.tensordot(weights[places], tables, 1), gate, " and ".join(variables))
            for (variables, gate), (places, tables) in self._tables.items()
        )

    @cached_property
    def _tables(self) -> dict[tuple[tuple[str, ...], Gate | None], tuple[IntArray, FloatArray]]:
        """For each set of variables and gate, the functions ``[k]`` with a table over these, and the tables."""
        by_scope: dict[tuple[tuple[str, ...], Gate | None], list[tuple[int, FloatArray]]] = {}
        functions = (function for group in self.prior.groups for function in group.functions)
        for place, function in enumerate(functions):
            for term in function:
                by_scope.setdefault((term.variables, term.gate), []).append((place, term.table))
        return {
            key: (np.array([place for place, _ in each]), np.stack([table for _, table in each]))
            for key, each in by_scope.items()
        }

    def mean(self, subnets: IntArray) -> FloatArray:
        """Posterior mean for choice indices ``[n, variables]``, with the own misfit of evaluated SubNets: ``[n]``."""
        return np.asarray(self._features(subnets) @ self._mean + self._cross(subnets) @ self._solved)

    def variance(self, subnets: IntArray) -> FloatArray:
        """Posterior variance of ``mean`` ``[n]``; a SubNet that was not evaluated has an unknown misfit."""
        return self._posterior(subnets, self._cross(subnets))

    def variance_beside_noise(self, subnets: IntArray) -> FloatArray:
        """The part of the variance that is no noise of the evaluations: what the prior leaves open, ``[n]``.

        That of SubNets ``[n, variables]`` as if none of them had been evaluated itself.
        """
        cross = self._by_terms(subnets)
        noise = np.square(self._solve(cross)) @ self.part.independent
        return np.asarray(np.maximum(self._posterior(subnets, cross) - noise, 0.0))

    def gain(self, subnets: IntArray) -> FloatArray:
        """Derivative of the sum of terms by the number of each evaluated SubNet, ``[n, m]``.

        The prior variances are fixed. A single drop moves the functions that are made of it as well: with the columns F
        of the evaluated SubNets and f of the asked ones, the weights w, their posterior covariance P, the gain K of
        fixed functions and a = S^-1 (t - F m), a change of the functions moves f w by df w - K dF w + f P dF^T a.

        Args:
            subnets: choice indices ``[n, variables]``.
        """
        columns, n = self._features(subnets), len(subnets)
        gain = self._solve(self._by_terms(subnets))
        moved = np.zeros_like(gain)
        for place, changes in self._drop_changes(np.concatenate([subnets, self.indices])):
            new, seen = changes[:n], changes[n:]
            unknown = self._scale[place] * (columns[:, place] - gain @ self._columns[:, place])
            moved += self.weights[place] * (new - gain @ seen) + np.outer(unknown, self._solved @ seen)
        return np.asarray(gain + moved)

    def _drop_changes(self, subnets: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """Place and derivative by the evaluated numbers ``[n, m]`` of each function that is made of single drops."""
        start = 0
        for group in self.prior.groups:
            for number, changes in enumerate(by_targets(group, self.space, subnets, self.indices)):
                yield start + number, changes
            start += len(group.functions)

    def _by_terms(self, subnets: IntArray) -> FloatArray:
        """Prior covariance of SubNets ``[n, variables]`` with the evaluated ones, without misfits: ``[n, m]``."""
        return np.asarray((self._features(subnets) * self._scale) @ self._columns.T)

    def _posterior(self, subnets: IntArray, cross: FloatArray) -> FloatArray:
        """Posterior variance ``[n]``, given prior covariances with the evaluated SubNets ``[n, m]``."""
        prior = np.square(self._features(subnets)) @ self._scale + self._misfit(subnets)
        variance = prior - np.einsum("ij,ij->i", cross, self._solve(cross))
        return np.asarray(np.maximum(variance, 0.0))

    def _solve(self, cross: FloatArray) -> FloatArray:
        """Prior covariances with the evaluated SubNets ``[n, m]`` times the inverse of theirs: ``[n, m]``."""
        return np.asarray(np.linalg.solve(self._total, cross.T).T)

    def _features(self, subnets: IntArray) -> FloatArray:
        columns = (group.columns(self.space, subnets) for group in self.prior.groups)
        return np.concatenate([np.zeros((len(subnets), 0)), *columns], axis=1)

    def _cross(self, subnets: IntArray) -> FloatArray:
        """Prior covariance of SubNets ``[n, variables]`` with the evaluated ones, misfits included: ``[n, m]``."""
        same = (subnets[:, None, :] == self.indices[None]).all(axis=2)
        own = self._misfit(subnets)[:, None] * same
        return np.asarray(self._by_terms(subnets) + own)

    def _misfit(self, subnets: IntArray) -> FloatArray:
        """Variance of the misfit of each SubNet ``[n]``."""
        uneven = self.prior.uneven * (self._features(subnets) @ self._mean)
        return np.asarray(self.prior.variances[MISFIT] + extra_misfit(self.space, subnets) + np.square(uneven))

    @cached_property
    def _columns(self) -> FloatArray:
        return self._features(self.indices)

    @cached_property
    def _mean(self) -> FloatArray:
        means = (np.full(len(group.functions), group.mean) for group in self.prior.groups)
        return np.concatenate([np.zeros(0), *means])

    @cached_property
    def _scale(self) -> FloatArray:
        scales = (np.full(len(group.functions), self.prior.variances[group.name]) for group in self.prior.groups)
        return np.concatenate([np.zeros(0), *scales])

    @cached_property
    def _total(self) -> FloatArray:
        """Prior covariance of the observed numbers ``[m, m]``."""
        return np.asarray((self._columns * self._scale) @ self._columns.T + np.diag(self._own))

    @cached_property
    def _own(self) -> FloatArray:
        """Variance that each observed number has for itself, misfit and noise ``[m]``."""
        return self._misfit(self.indices) + self.part.independent

    @cached_property
    def _solved(self) -> FloatArray:
        return np.asarray(np.linalg.solve(self._total, self.part.target - self._columns @ self._mean))


def favoured(space: Space) -> list[SubNet]:
    """The smallest SubNet at each resolution."""
    small = smallest(space)
    if RESOLUTION not in space.positions:
        return [small]
    return list(dict.fromkeys(small.transform(Modification(RESOLUTION, c)) for c in space[RESOLUTION].choices))


def extra_misfit(space: Space, subnets: npt.ArrayLike) -> FloatArray:
    """Variance of each SubNet's misfit beside that of all SubNets, for choice indices ``[n, variables]``: ``[n]``."""
    rows = np.array(subnets, dtype=np.int64, ndmin=2)
    favourites = np.array([subnet.to_array() for subnet in favoured(space)])
    return np.asarray(VARIANCE * (rows[:, None, :] == favourites[None]).all(axis=2).any(axis=1))


def by_targets(group: Group, space: Space, subnets: IntArray, evaluated: IntArray) -> FloatArray:
    """Derivative of a group's columns by the numbers of evaluated SubNets.

    In canonical form a variable that has another choice than its default is there, so that no gate is asked.

    Args:
        group: of functions.
        space: of the SubNets.
        subnets: choice indices ``[n, variables]``, canonical.
        evaluated: choice indices ``[m, variables]``, canonical.

    Returns:
        ``[functions, n, m]``; no functions for a group that is not made of single drops.
    """
    if group.name not in (DROPS, DROPS_BY_RESOLUTION, DROPS_BY_VARIABLE):
        return np.zeros((0, len(subnets), len(evaluated)))
    differs = evaluated != largest(space).to_array()
    single = np.flatnonzero(differs.sum(axis=1) == 1)
    columns = differs[single].argmax(axis=1)
    derivative = np.zeros((len(group.functions), len(subnets), len(evaluated)))
    for number, function in enumerate(group.functions):
        summed = np.zeros(len(space), dtype=np.bool_)
        summed[[space.positions[term.variables[-1]] for term in function]] = True
        has = (subnets[:, columns] == evaluated[single, columns]) & summed[columns]
        derivative[number][:, single] = has * _factor(group, number, space, subnets)[:, None]
    return derivative


def _factor(group: Group, number: int, space: Space, subnets: IntArray) -> FloatArray:
    """What a function multiplies the drops of each SubNet by ``[n]``."""
    if group.name != DROPS_BY_RESOLUTION:
        return np.ones(len(subnets))
    contrast = contrasts(len(space[RESOLUTION].choices))[number]
    return np.asarray(contrast[subnets[:, space.positions[RESOLUTION]]])
