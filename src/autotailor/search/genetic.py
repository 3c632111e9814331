"""pymoo's NSGA-II over choice indices (paper, section 4.3.2)."""

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
from autotailor.ir.space.subnet import IntArray, canonical, sample, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.progress.bars import track
from autotailor.search.config import SearchConfig
from autotailor.search.front import Front, Objectives, non_dominated
from autotailor.search.start.beam import beam_search, best_at_budgets, descents

BoolArray = npt.NDArray[np.bool_]

CROSSED = 0.9
"""Probability that two parents are crossed at all."""


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
        found = np.concatenate([ends, beam_search(objectives, config.beam_width), descents(objectives, half)])
        ends = best_at_budgets(objectives, found, half)
    wanted = min(config.population, space.num_distinct)
    rows = {row.tobytes(): row for row in ends}
    for _ in range(20 * config.population):
        if len(rows) >= wanted:
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
