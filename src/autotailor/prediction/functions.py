"""Functions of SubNets whose weighted sum predicts accuracy, in groups that share one prior variance.

Every function is a sum of terms, so that the weighted sum is a sum of terms again, which a search can eliminate:

* ``offset``: 1 for every SubNet. The largest SubNet alone lies off what training has seen.
* ``drops``: the sum of single drops (paper, eq. 3); its weight is 1 before any evaluation, unless another is named.
* ``drops_by_resolution``: the same sum, with another weight at each resolution.
* ``drops_by_variable``: the drops of each variable alone, with a weight of its own beside that of the sum.
* ``sizes``: for each kind of variable, how far its variables are from the unmodified choice altogether.
* ``sizes_by_resolution``: the same, with another weight at each resolution.
* ``choices``: the choices of each variable.
* ``pairs_with_resolution``, ``pairs``: the joint choices of two variables.

A term over two variables is admitted only where a term of the cost (MACs or latency) already couples these variables
and those of their gates. An elimination over both metrics then has no larger table than one over the cost alone.

Divergences from the largest SubNet's outputs add up so well that whole SubNets correct the weights of single drops only
(``proportional``). Functions that are as large for modifications that hardly change the outputs as for those that ruin
them would let SubNets far from the front decide between such as are on it.
"""

import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.gate import both
from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space, Variable

DROPS, DROPS_BY_RESOLUTION, DROPS_BY_VARIABLE = "drops", "drops_by_resolution", "drops_by_variable"
MOST_GATED = 512  # joint choices of the variables in the gates of a pair
DAMPING = 0.5  # of a contrast against the one with one change of direction less

Function = tuple[Term, ...]


@dataclass(frozen=True, eq=False)
class Group:
    """Functions whose weights have one prior mean and one prior variance.

    Attributes:
        name: see the module's docstring.
        functions: each a sum of terms.
        mean: prior mean of the weights.
    """

    name: str
    functions: tuple[Function, ...]
    mean: float = 0.0

    def columns(self, space: Space, subnets: IntArray) -> FloatArray:
        """Values of the functions for choice indices ``[n, variables]``: ``[n, functions]``."""
        values = np.zeros((len(subnets), len(self.functions)))
        for column, function in enumerate(self.functions):
            for term in function:
                values[:, column] += term.values(space, subnets)
        return values


def proportional(space: Space, drops: Mapping[str, FloatArray]) -> tuple[Group, ...]:
    """The groups that are made of single drops; arguments as of ``groups``."""
    single = _single(space, drops)
    return Group(DROPS, (tuple(single),), 1.0), Group(DROPS_BY_VARIABLE, tuple((term,) for term in single))


def groups(space: Space, drops: Mapping[str, FloatArray], cost: Metric, mean: float = 1.0) -> tuple[Group, ...]:
    """The groups of a space that have functions.

    Args:
        space: of the SuperNet.
        drops: variable to the value of each of its choices alone, 0 for the unmodified choice.
        cost: the metric whose terms say which variables may be coupled.
        mean: prior mean of the weight of the sum of single drops.
    """
    free = [variable for variable in space if len(variable.choices) > 1]
    scopes = {frozenset(term.scope) for term in cost.terms}
    pairs = [pair for pair in itertools.combinations(free, 2) if _admitted(pair, scopes)]
    kinds = dict.fromkeys(v.kind for v in free)
    single = _single(space, drops)
    sizes = [tuple(Term((v.name,), _distance(v), v.gate) for v in free if v.kind == kind) for kind in kinds]
    choices = [(Term((v.name,), column, v.gate),) for v in free for column in _contrasts_of(v)]
    joint = {pair: _joint(*pair) for pair in pairs}
    candidates = [
        Group("offset", ((Term((), np.ones(())),),)),
        Group(DROPS, (tuple(single),), mean),
        Group(DROPS_BY_RESOLUTION, _by_resolution(space, [tuple(single)], pairs)),
        Group("sizes", tuple(sizes)),
        Group("sizes_by_resolution", _by_resolution(space, sizes, pairs)),
        Group("choices", tuple(choices)),
        Group("pairs_with_resolution", tuple(f for p, fs in joint.items() if _has_resolution(p) for f in fs)),
        Group("pairs", tuple(f for p, fs in joint.items() if not _has_resolution(p) for f in fs)),
    ]
    return tuple(group for group in candidates if group.functions)


def _single(space: Space, drops: Mapping[str, FloatArray]) -> list[Term]:
    """The drops of each variable that has a choice."""
    free = [variable for variable in space if len(variable.choices) > 1]
    return [Term((v.name,), np.asarray(drops[v.name], dtype=np.float64), v.gate) for v in free]


@lru_cache
def contrasts(count: int, is_ordered: bool = True) -> FloatArray:
    """Orthogonal polynomials over ``count`` choices, without the constant one: ``[count - 1, count]``.

    Each has a mean of 0 and a mean square of 1. Higher ones are damped where choices have an order, since size mostly
    acts in one direction; without damping no choice is nearer to one than to another.
    """
    powers = np.vander(np.linspace(-1.0, 1.0, count), count, increasing=True)
    orthogonal, _ = np.linalg.qr(powers)
    damping = (DAMPING if is_ordered else 1.0) ** np.arange(count - 1)
    return np.asarray(orthogonal[:, 1:].T * np.sqrt(count) * damping[:, None])


def _contrasts_of(variable: Variable) -> FloatArray:
    """The contrasts of the choices of a variable: ``[choices - 1, choices]``."""
    return contrasts(len(variable.choices), variable.is_ordered)


def _distance(variable: Variable) -> FloatArray:
    """Distance of each choice from the unmodified one: 1 over the whole range, and between any two names."""
    places = np.abs(np.arange(len(variable.choices), dtype=np.float64) - variable.default)
    return places / (len(variable.choices) - 1) if variable.is_ordered else np.minimum(places, 1.0)


def _admitted(pair: tuple[Variable, Variable], scopes: Collection[frozenset[str]]) -> bool:
    """Whether a term of the cost, by the variables of each, couples two variables and those of their gates."""
    gates = [variable.gate for variable in pair if variable.gate is not None]
    sizes = {name: n for gate in gates for name, n in zip(gate.variables, gate.shape, strict=True)}
    scope = {pair[0].name, pair[1].name, *sizes}
    return math.prod(sizes.values()) <= MOST_GATED and any(scope <= each for each in scopes)


def _has_resolution(pair: tuple[Variable, Variable]) -> bool:
    return RESOLUTION in (pair[0].name, pair[1].name)


def _joint(a: Variable, b: Variable) -> list[Function]:
    """Products of the contrasts of two variables, which count where both gates are open."""
    gate = both(a.gate, b.gate)
    return [
        (Term((a.name, b.name), np.outer(of_a, of_b), gate),) for of_a in _contrasts_of(a) for of_b in _contrasts_of(b)
    ]


def _by_resolution(
    space: Space, functions: list[Function], pairs: list[tuple[Variable, Variable]]
) -> tuple[Function, ...]:
    """Products of contrasts of the resolution with those terms of functions that may be coupled with the resolution."""
    coupled = {name for pair in pairs if _has_resolution(pair) for name in (pair[0].name, pair[1].name)} - {RESOLUTION}
    if not coupled:
        return ()
    products = []
    for contrast in contrasts(len(space[RESOLUTION].choices)):
        for function in functions:
            kept = [term for term in function if term.variables[0] in coupled]
            products.append(tuple(Term((RESOLUTION, *t.variables), np.outer(contrast, t.table), t.gate) for t in kept))
    return tuple(function for function in products if function)
