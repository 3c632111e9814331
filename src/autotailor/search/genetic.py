"""pymoo's NSGA-II over choice indices, which begins with a beam search (paper, section 4.3.2).

The beam goes from the largest SubNet downwards. Beside it stand *descents*: SubNets that no other choice of a single
variable improves, for many weights of the two objectives. The SubNet with the least weighted sum of cost and negated
accuracy lies on the front, whatever the weights are. A *descent* goes from the largest SubNet to one with a small
weighted sum: one variable after the other takes the choice that makes the sum least, until no variable changes. All
weights descend together, and after each round a weight that is better served by the SubNet of another weight goes on
from there.

What descents find is no more than a local optimum where terms couple variables. The genetic search begins with it.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.crossover import Crossover
from pymoo.core.duplicate import DuplicateElimination
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.operators.crossover.sbx import SBX
from pymoo.operators.crossover.ux import UniformCrossover
from pymoo.operators.mutation.pm import PM
from pymoo.operators.repair.rounding import RoundingRepair
from pymoo.problems.static import StaticProblem

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, canonical, largest, sample, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.progress.bars import track
from autotailor.search.config import SearchConfig
from autotailor.search.front import Front, Objectives, non_dominated

BoolArray = npt.NDArray[np.bool_]

CROSSED = 0.9
"""Probability that two parents are crossed at all."""

ROUNDS = 12
"""Rounds over all variables at most. The paper's spaces need four to six."""


class CanonicalRepair(RoundingRepair):  # type: ignore[misc]
    """Rounds to choices and brings SubNets into canonical form, so that equal rows are equal SubNets."""

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space

    def _do(self, problem: Any, X: Any, **kwargs: Any) -> IntArray:
        return canonical(self.space, super()._do(problem, X, **kwargs))


class EqualRows(DuplicateElimination):  # type: ignore[misc]
    """Finds individuals with equal choices by their bytes, where pymoo's default compares distances of all pairs."""

    def _do(self, pop: Population, other: Population | None, is_duplicate: BoolArray) -> BoolArray:
        seen = set() if other is None else set(_keys(self.func(other)))
        for place, key in enumerate(_keys(self.func(pop))):
            is_duplicate[place] |= key in seen
            if other is None:
                seen.add(key)
        return is_duplicate


def _keys(indices: npt.ArrayLike) -> list[bytes]:
    """The bytes of each row of choice indices ``[n, variables]``."""
    return [row.tobytes() for row in np.asarray(indices, dtype=np.int64)]


class Evaluator:
    """Predicts each SubNet once, and remembers the predictions of all SubNets."""

    def __init__(self, objectives: Objectives) -> None:
        self.objectives = objectives
        self.cache: dict[bytes, tuple[float, float]] = {}

    def __call__(self, indices: IntArray) -> FloatArray:
        """Cost and negated accuracy ``[n, 2]``, both minimised, of ``indices`` ``[n, variables]``.

        Accuracy is taken before the metric's link, which keeps the order, so that no link changes the search.
        """
        keys = _keys(indices)
        fresh = {key: i for i, key in enumerate(keys) if key not in self.cache}
        if fresh:
            rows = indices[list(fresh.values())]
            cost, accuracy = self.objectives.cost.predict(rows), self.objectives.accuracy.linear(rows)
            self.cache.update(zip(fresh, zip(cost.tolist(), (-accuracy).tolist(), strict=True), strict=True))
        return np.array([self.cache[key] for key in keys])

    def best(self) -> IntArray:
        """Choice indices ``[k, variables]`` of the non-dominated SubNets among all predicted ones."""
        values = np.array(list(self.cache.values()))
        rows = non_dominated(values[:, 0], -values[:, 1])
        keys = list(self.cache)
        return np.stack([np.frombuffer(keys[row], dtype=np.int64) for row in rows])


def initial_population(objectives: Objectives, config: SearchConfig, rng: np.random.Generator) -> IntArray:
    """Distinct SubNets ``[population, variables]``: half from descents and a beam search, the rest random."""
    space = objectives.space
    ends = stack([smallest(space)])
    if config.beam_width:
        half = config.population // 2
        seeds = np.concatenate([ends, beam_search(objectives, config.beam_width), descents(objectives, half)])
        ends = best_at_budgets(objectives, seeds, half)
    size = min(config.population, space.num_distinct)
    rows = {row.tobytes(): row for row in ends}
    for _ in range(20 * config.population):
        if len(rows) >= size:
            break
        row = sample(space, rng).to_array()
        rows.setdefault(row.tobytes(), row)
    return np.stack(list(rows.values()))


def genetic_front(objectives: Objectives, config: SearchConfig) -> Front:
    """Front of all SubNets that NSGA-II predicted; the same metrics and configuration give the same front."""
    steps = track(evolve(objectives, config), total=config.generations, description="search", transient=True)
    (evaluator,) = deque(steps, maxlen=1)
    return Front.of(objectives, evaluator.best(), "genetic")


def evolve(objectives: Objectives, config: SearchConfig) -> Iterator[Evaluator]:
    """Runs NSGA-II; yields, after each generation, the evaluator with everything that was predicted so far."""
    space = objectives.space
    evaluator = Evaluator(objectives)
    start = initial_population(objectives, config, np.random.default_rng(config.seed))
    algorithm = NSGA2(
        pop_size=config.population,
        sampling=start,
        crossover=_crossover(config),
        mutation=PM(eta=config.mutation_eta),
        repair=CanonicalRepair(space),
        eliminate_duplicates=EqualRows(),
    )
    upper = np.array([len(v.choices) - 1 for v in space])
    problem = Problem(n_var=len(space), n_obj=2, xl=np.zeros(len(space), dtype=int), xu=upper, vtype=int)
    algorithm.setup(problem, termination=("n_gen", config.generations), seed=config.seed, verbose=False)
    for _ in range(config.generations):
        if not algorithm.has_next():
            break
        population = algorithm.ask()
        if population is None or len(population) == 0:
            break
        _evaluate(algorithm, problem, population, evaluator)
        yield evaluator


def _crossover(config: SearchConfig) -> Crossover:
    """Uniform crossover, or simulated binary crossover where the configuration has its distribution index.

    Most variables have two to four choices. There, three quarters of the choices of a child of simulated binary
    crossover are those of one parent, and half of a child of uniform crossover. So uniform crossover combines what
    parents have in fewer generations.
    """
    if config.crossover_eta is None:
        return UniformCrossover(prob=CROSSED)
    return SBX(prob=CROSSED, eta=config.crossover_eta)


def _evaluate(algorithm: Any, problem: Problem, population: Population, evaluator: Evaluator) -> None:
    """Predicts one generation, and tells the algorithm the predictions."""
    values = evaluator(np.asarray(population.get("X"), dtype=np.int64))
    algorithm.evaluator.eval(StaticProblem(problem, F=values), population)
    algorithm.tell(infills=population)


def distinct(indices: IntArray) -> IntArray:
    """Distinct rows of choice indices ``[n, variables]`` in rising order, as ``np.unique(axis=0)`` has them.

    Rows are compared as bytes, which is several times faster than number by number. Two bytes for each index, the
    higher one first, keep the order.
    """
    packed = np.ascontiguousarray(indices.astype(">u2"))
    keys = packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).ravel()
    return indices[np.unique(keys, return_index=True)[1]]


def neighbours(space: Space, indices: IntArray) -> IntArray:
    """All distinct SubNets one modification away from ``indices`` ``[n, variables]``: ``[m, variables]``."""
    rows = []
    for column, variable in enumerate(space):
        for choice in range(len(variable.choices)):
            changed = indices.copy()
            changed[:, column] = choice
            rows.append(changed)
    return distinct(canonical(space, np.concatenate(rows)))


def beam_search(objectives: Objectives, width: int) -> IntArray:
    """Shrinks the largest SubNet by one modification at a time.

    Each step tries all single modifications of the beam's SubNets that lower the cost, and keeps the ``width`` results
    that lose the least accuracy for the cost saved, both relative to the largest SubNet. Terms are additive, so
    that the price of a modification can be judged in a partly modified network. The search ends where no modification
    lowers the cost.

    Returns:
        All SubNets of all beams, distinct: ``[n, variables]``.
    """
    space = objectives.space
    start = largest(space).to_array()[None]
    start_cost, start_accuracy = (
        objectives.cost.predict(start)[0],
        objectives.accuracy.linear(start)[0],
    )
    beam, visited, ceiling = start, [start], start_cost
    for _ in range(sum(len(v.choices) - 1 for v in space)):
        candidates = neighbours(space, beam)
        cost = objectives.cost.predict(candidates)
        cheaper = cost < ceiling
        if not cheaper.any():
            break
        candidates, cost = candidates[cheaper], cost[cheaper]
        price = (start_accuracy - objectives.accuracy.linear(candidates)) / (start_cost - cost)
        kept = np.argsort(price, kind="stable")[:width]
        beam = candidates[kept]
        ceiling = cost[kept].max()
        visited.append(beam)
    return distinct(np.concatenate(visited))


def best_at_budgets(objectives: Objectives, indices: IntArray, budgets: int) -> IntArray:
    """The most accurate of ``indices`` ``[n, variables]`` at each of ``budgets`` budgets, spread evenly."""
    cost, accuracy = objectives.cost.predict(indices), objectives.accuracy.predict(indices)
    order = np.lexsort((-accuracy, cost))
    best = np.maximum.accumulate(accuracy[order])
    first = np.searchsorted(best, best)  # the first row that reached this accuracy
    limits = np.linspace(cost.min(), cost.max(), budgets)
    limits[-1] = cost.max()
    rows = first[np.searchsorted(cost[order], limits, side="right") - 1]
    return indices[order[np.unique(rows)]]


def descents(objectives: Objectives, count: int) -> IntArray:
    """Local optima of ``count`` weighted sums of cost and accuracy, distinct: ``[k, variables]``, k <= count.

    Each objective counts in units of what the largest and the smallest SubNet are apart in it, and the angles of the
    weights are spread evenly. Accuracy is taken before the metric's link.
    """
    space = objectives.space
    weights = _weights(objectives, count)
    rows = np.repeat(largest(space).to_array()[None], count, axis=0)
    for _ in range(ROUNDS):
        before = rows
        for column, variable in enumerate(space):
            if len(variable.choices) > 1:
                rows = _with_best_choice(objectives, weights, rows, column)
        values = _values(objectives, rows)
        rows = rows[np.argmin(weights @ values.T, axis=1)]
        if np.array_equal(rows, before):
            break
    return distinct(rows)


def _weights(objectives: Objectives, count: int) -> FloatArray:
    """Weights of cost and negated accuracy ``[count, 2]``."""
    ends = _values(objectives, stack([smallest(objectives.space), largest(objectives.space)]))
    spans = np.abs(ends[1] - ends[0])
    angles = np.linspace(0.0, np.pi / 2, count + 2)[1:-1]
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.where(spans > 0, spans, 1.0)


def _values(objectives: Objectives, indices: IntArray) -> FloatArray:
    """Cost and negated accuracy, before their links, for ``indices`` ``[n, variables]``: ``[n, 2]``."""
    return np.stack([objectives.cost.linear(indices), -objectives.accuracy.linear(indices)], axis=1)


def _with_best_choice(objectives: Objectives, weights: FloatArray, rows: IntArray, column: int) -> IntArray:
    """SubNets ``[count, variables]`` whose variable ``column`` has the choice with the least weighted sum."""
    choices = len(objectives.space.variables[column].choices)
    offered = np.repeat(rows, choices, axis=0)
    offered[:, column] = np.tile(np.arange(choices), len(rows))
    offered = canonical(objectives.space, offered)
    values = _values(objectives, offered).reshape(len(rows), choices, 2)
    best = np.argmin(np.einsum("kco,ko->kc", values, weights), axis=1)
    return np.asarray(offered[np.arange(len(rows)) * choices + best])
