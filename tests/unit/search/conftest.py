"""Synthetic spaces and metrics for the tests of the search."""

from collections.abc import Callable

import numpy as np
import pytest

from autotailor.ir.metrics.liveness import Buffer, Liveness
from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.variable import Space, Variable
from autotailor.search import Objectives, SearchConfig, SearchResult, search

RESOLUTIONS, WIDTHS, EXPANSIONS = (32, 28, 24), (1.0, 0.75, 0.5), (0.25, 0.2, 0.125)


def residual_space(stages: int, blocks: int, removable: int, resolutions: int = 3) -> Space:
    """A bottleneck ResNet's space: resolution, and by stage depth, width and an expand ratio per block."""
    variables = []
    if resolutions > 1:
        variables.append(Variable("resolution", "resolution", RESOLUTIONS[:resolutions], 0, least=resolutions - 1))
    number = 0
    for stage in range(1, stages + 1):
        depth = f"stage{stage}.depth"
        variables.append(Variable(depth, "depth", tuple(range(removable + 1)), 0, least=removable))
        variables.append(Variable(f"stage{stage}.width", "width", WIDTHS, 0, least=2))
        for place in range(blocks):
            kept = tuple(removed < blocks - place for removed in range(removable + 1))
            gate = None if all(kept) else Gate((depth,), kept)
            variables.append(Variable(f"block{number}.expand_ratio", "expand_ratio", EXPANSIONS, 0, gate, least=2))
            number += 1
    return Space(tuple(variables))


def objectives_of(space: Space, seed: int = 0, places: int = 1) -> Objectives:
    """Latency by plausible products with noise; accuracy by random drops for each single modification."""
    rng = np.random.default_rng(seed)
    latency, drops, parameters = [], [], []
    stage = None
    for variable in space:
        size = len(variable.choices)
        drop = np.sort(np.append(rng.exponential(1.0, size - 1), 0.0))
        drops.append(Term((variable.name,), -drop, variable.gate, variable.name))
        if variable.kind == "depth":
            stage = variable.name.split(".")[0]
        if variable.kind == "expand_ratio":
            names = [
                n for n in ("resolution", f"{stage}.depth", f"{stage}.width", variable.name) if n in space.positions
            ]
            for _ in range(places):
                table = _costs(space, names, rng)
                latency.append(Term(tuple(names), table, variable.gate, variable.name))
            parameters.append(Term((variable.name,), np.linspace(1, 0.5, size), variable.gate, variable.name))
    for a, b in zip(range(1, 9), range(2, 9), strict=False):
        names = [n for n in ("resolution", f"stage{a}.width", f"stage{b}.width") if n in space.positions]
        if f"stage{b}.width" in space.positions:
            latency.append(Term(tuple(names), _costs(space, names, rng), None, f"transition{a}"))
    return Objectives(
        Metric("accuracy", "%", space, tuple(drops), 95.0),
        Metric("latency", "ms", space, tuple(latency), 0.1),
        (Metric("parameters", "M", space, tuple(parameters), 0.5),),
    )


def _costs(space: Space, names: list[str], rng: np.random.Generator) -> np.ndarray:
    """A table that falls along every axis, with 5 % of noise, in ms."""
    table = np.full([len(space[n].choices) for n in names], rng.uniform(0.05, 0.2))
    for axis, name in enumerate(names):
        scale = np.ones(table.shape[axis]) if space[name].kind == "depth" else np.linspace(1, 0.5, table.shape[axis])
        table = table * np.expand_dims(scale, [a for a in range(table.ndim) if a != axis])
    return np.asarray(table * rng.uniform(0.95, 1.05, table.shape))


def memory_of(space: Space, parameters: Metric) -> PeakMemory:
    """A chain of activations, one for each block, that the next block reads."""
    blocks = [variable for variable in space if variable.kind == "expand_ratio"]
    rng = np.random.default_rng(5)
    buffers = [
        Buffer(Term((v.name,), rng.uniform(1, 4, len(v.choices))), step, v.gate, ((step + 1, None),), None)
        for step, v in enumerate(blocks, 1)
    ]
    return PeakMemory(space, parameters, Liveness(space, tuple(buffers), {}, (), len(blocks) + 1), 0.75)


@pytest.fixture(name="memory_of", scope="session")
def memory_of_fixture() -> Callable[[Space, Metric], PeakMemory]:
    """``memory_of``."""
    return memory_of


@pytest.fixture(name="residual_space", scope="session")
def residual_space_fixture() -> Callable[..., Space]:
    """``residual_space``."""
    return residual_space


@pytest.fixture(name="objectives_of", scope="session")
def objectives_of_fixture() -> Callable[..., Objectives]:
    """``objectives_of``."""
    return objectives_of


@pytest.fixture(name="objectives", scope="session")
def objectives_fixture() -> Objectives:
    """Latency and accuracy of a space of three stages."""
    return objectives_of(residual_space(3, 2, 1), seed=1)


@pytest.fixture(name="result", scope="session")
def result_fixture(objectives: Objectives) -> SearchResult:
    """What a quick search finds for them."""
    return search(objectives, SearchConfig(population=40, generations=30))
