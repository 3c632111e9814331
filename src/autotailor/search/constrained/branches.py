"""Branch and bound over the cliques: the SubNet with the least value within the limits, or a bound of it.

The variables are decided in the reverse order of their elimination, so that the separator of a clique is decided when
its variable is. A node is a partial assignment with some lower bounds: the least of several sums plus the excesses of
the decided entries (see ``cliques``). Some sums bound the value, one sum bounds each limit. A node ends where a bound
of the value reaches the best value that is known, or a limit is exceeded for certain.

Nodes of one depth are expanded together, in arrays. At each depth the most promising nodes go on; the others wait. The
waiting nodes with the least bound follow, until none is left, which proves the best SubNet, or until the time is over.
Then the least bound of the waiting nodes is the bound of the answer.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.search.constrained.cliques import FORBIDDEN, Cliques, Reduced
from autotailor.search.constrained.question import WITHIN

WIDTH = 2000
"""Nodes that are expanded at once."""
WAITING = 500_000
"""Nodes that may wait; with more, the search ends as if the time were over."""

ChoiceArray = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Sums whose bounds end nodes.

    Attributes:
        least: of each sum ``[sums]``.
        excess: of each entry ``[entries, sums]``.
        values: so many of the sums, the first ones, bound the value; the largest of them is the value of a SubNet. The
            other sums must not exceed 0.
    """

    least: FloatArray
    excess: FloatArray
    values: int

    @classmethod
    def of(cls, values: Reduced, limits: Reduced | None = None) -> Bounds:
        """Sums that bound the value, and sums that must not exceed 0."""
        parts = [values] if limits is None else [values, limits]
        excess = np.ascontiguousarray(np.vstack([part.excess for part in parts]).T)
        return cls(np.concatenate([part.least for part in parts]), excess, len(values.least))


@dataclass(frozen=True, eq=False)
class Found:
    """What the search found.

    Attributes:
        row: choice indices ``[variables]`` of the best SubNet; None where none is better than what was known.
        value: of the SubNet, or what was known.
        bound: no SubNet within the limits has a lower value.
    """

    row: IntArray | None
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Partial assignments of one depth, by rising bound of the value.

    Attributes:
        depth: cliques whose variable is not decided yet.
        choices: choice indices ``[n, variables]``, 0 for variables that are not decided yet.
        sums: lower bounds of the sums ``[n, sums]``.
        bounds: of the value ``[n]``.
    """

    depth: int
    choices: ChoiceArray
    sums: FloatArray
    bounds: FloatArray

    def __len__(self) -> int:
        return len(self.choices)

    def split(self, count: int) -> tuple[_Nodes, _Nodes]:
        """The first nodes, and the others."""
        parts = (slice(count), slice(count, None))
        first, others = (_Nodes(self.depth, self.choices[p], self.sums[p], self.bounds[p]) for p in parts)
        return first, others


@dataclass
class _Waiting:
    """Nodes that wait, by least bound."""

    heap: list[tuple[float, int, _Nodes]] = field(default_factory=list)
    count: int = 0
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def push(self, nodes: _Nodes) -> None:
        if len(nodes):
            heapq.heappush(self.heap, (float(nodes.bounds[0]), next(self.numbers), nodes))
            self.count += len(nodes)

    def pop(self) -> _Nodes:
        """The ``WIDTH`` nodes with the least bounds of those that wait together."""
        nodes = heapq.heappop(self.heap)[2]
        self.count -= len(nodes)
        first, others = nodes.split(WIDTH)
        self.push(others)
        return first

    @property
    def bound(self) -> float:
        return self.heap[0][0] if self.heap else np.inf


def branch(cliques: Cliques, sums: Bounds, value: float, goal: Callable[[float], float], end: float) -> Found:
    """Looks for SubNets with a lower value than the one that is known.

    Args:
        cliques: of the space.
        sums: see ``Bounds``.
        value: the best that is known; infinite without.
        goal: from the best value so far to the value that another SubNet must be below to be looked for; a little lower
            at least, so that equal values are told apart from lower ones. The function must not fall.
        end: when to end, by ``time.process_time``.
    """
    waiting, row = _Waiting(), None
    least = np.asarray(sums.least[None])
    root = _Nodes(len(cliques.scopes), np.zeros((1, len(cliques.space)), dtype=np.int16), least, _values(least, sums))
    if (least[:, sums.values :] <= WITHIN).all():
        waiting.push(root)
    while waiting.bound < goal(value) and time.process_time() < end and waiting.count <= WAITING:
        nodes = waiting.pop()
        while nodes.depth and len(nodes):
            nodes = _expanded(cliques, sums, nodes, min(goal(value), FORBIDDEN / 2))
            if nodes.depth:
                nodes, others = nodes.split(WIDTH)
                waiting.push(others)
        if len(nodes):
            row, value = nodes.choices[0].astype(np.int64), float(nodes.bounds[0])
    return Found(row, value, min(goal(value), waiting.bound))


def _values(sums: FloatArray, bounds: Bounds) -> FloatArray:
    """Bounds of the value ``[n]`` from the sums ``[n, sums]``."""
    return np.asarray(sums[:, : bounds.values].max(axis=1))


def _expanded(cliques: Cliques, bounds: Bounds, nodes: _Nodes, below: float) -> _Nodes:
    """All choices of the next variable, without those that exceed a limit or reach the value ``below``."""
    clique = nodes.depth - 1
    count, width = cliques.choices[clique], len(bounds.least)
    own = bounds.excess[cliques.starts[clique] : cliques.starts[clique + 1]].reshape(-1, count, width)
    places = cliques.separators[clique].number(nodes.choices)
    sums = (nodes.sums[:, None, :] + own[places]).reshape(-1, width)
    values = _values(sums, bounds)
    kept = np.flatnonzero((values < below) & (sums[:, bounds.values :] <= WITHIN).all(axis=1))
    kept = kept[np.argsort(values[kept], kind="stable")]
    choices = nodes.choices[kept // count]
    choices[:, cliques.scopes[clique][-1]] = kept % count
    return _Nodes(clique, choices, sums[kept], values[kept])
