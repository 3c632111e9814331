"""Which tensors are kept while the SubNets of a tree run one after the other: the exact plan under a memory limit.

The SubNets run depth first. At the end of a branch b with k children one run arrives, and k - 1 runs must start again
and repeat work: from the last position p above b whose tensors are kept, or from a cut q of b itself, once it is kept.
Each child runs while q is kept, with less memory left and short ways within, or without q, with more memory and ways
from p. With W the work up to a position, s the size of q, and R(c, p, m) the least repeated work among the descendants
of child c when p is the last position kept and m the memory left, the least repeated work behind b is the smaller of ::

    nothing kept:  sum over c of R(c, p, m)  +  (k - 1) (W(b) - W(p))
    q kept:        sum over c of R(c, q, m - s), or for j of the children of R(c, p, m)
                   +  (k - 1) (W(b) - W(q))  +  (j - 1) (W(q) - W(p)) where j > 1

where j children run without q. The last child can: it starts at q and takes the tensors over. The others of the j run
before q is kept, for a longer way: hence the last summand. R is a table over m, because what is left of the limit
differs from branch to branch. AdaptiveNet (section 5.2) keeps the end of every branch down to a depth, which is one
such plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from autotailor.accuracy.sharing.tree import START, Branch, Cut

UNITS = 128
"""The memory limit is divided into so many units; sizes are rounded up to units."""
Table = npt.NDArray[np.float64]
NOTHING: Table = np.zeros(UNITS + 1)


@dataclass
class Visit:
    """The run of one leaf.

    Attributes:
        subnets: of the leaf, which are all alike.
        start: position to start at; tensors that are kept at later positions are not needed any more.
        releases: whether the tensors at ``start`` are not needed after this start any more, either.
        keeps: cuts whose tensors are kept on the way, with rising position.
    """

    start: int
    releases: bool = False
    keeps: list[Cut] = field(default_factory=list)
    subnets: tuple[int, ...] = ()


def plan(tree: Branch, memory: int, images: int) -> tuple[Visit, ...]:
    """The visits of all leaves, in order, that together repeat the least work.

    Args:
        tree: of the SubNets.
        memory: bytes that kept tensors may take.
        images: that run at once; sizes of cuts are those of one image.
    """
    return _Planner(memory, images).visits(tree)


@dataclass(frozen=True, eq=False)
class _Option:
    """One way to go on behind a branch, for each amount of memory that is left.

    Attributes:
        cut: that is kept; None where nothing is.
        repeated: least repeated work, ``[UNITS + 1]``; infinite where the cut does not fit.
        gains: repeated work that each child saves by running without the cut, ``[children, UNITS + 1]``.
        price: of each child but one that runs without the cut.
    """

    cut: Cut | None
    repeated: Table
    gains: Table
    price: float

    def without(self, left: int) -> list[int]:
        """The children that run without the cut, those that gain most first."""
        ranked = [int(child) for child in np.argsort(-self.gains[:, left], kind="stable")[: len(self.gains) - 1]]
        least = [0.0, *[self.price] * len(ranked)]
        return [child for child, price in zip(ranked, least, strict=False) if self.gains[child, left] > price]


class _Planner:
    def __init__(self, memory: int, images: int) -> None:
        self._memory, self._images = memory, images
        self._tables: dict[tuple[int, int], Table] = {}

    def visits(self, tree: Branch) -> tuple[Visit, ...]:
        visits: list[Visit] = []
        self._walk(tree, START, UNITS, Visit(START.position), visits)
        return tuple(visits)

    def _walk(self, branch: Branch, kept: Cut, left: int, visit: Visit, visits: list[Visit]) -> None:
        """Appends the visits of a branch's leaves; ``visit`` is the one that arrives.

        Args:
            branch: whose leaves are visited.
            kept: the last cut whose tensors are kept meanwhile.
            left: units of memory.
            visit: that arrives at the branch.
            visits: visits so far.
        """
        if not branch.children:
            visit.subnets = branch.subnets
            visits.append(visit)
            return
        option = min(self._options(branch, kept), key=lambda each: float(each.repeated[left]))
        if option.cut is None:
            for number, child in enumerate(branch.children):
                self._walk(child, kept, left, visit if number == 0 else Visit(kept.position), visits)
            return
        cut, without = option.cut, option.without(left)
        inside = [number for number in range(len(branch.children)) if number not in without]
        early, last = without[1:], without[:1]
        for place, number in enumerate([*early, *inside, *last]):
            if place > 0:
                visit = Visit((kept if place <= len(early) else cut).position, releases=number in last)
            if number == inside[0]:
                visit.keeps.append(cut)
            held, rest = (cut, left - self._units(cut)) if number in inside else (kept, left)
            self._walk(branch.children[number], held, rest, visit, visits)

    def _table(self, branch: Branch, kept: Cut) -> Table:
        """The least repeated work behind a branch, for each number of units that are left: ``[UNITS + 1]``."""
        if not branch.children:
            return NOTHING
        key = id(branch), kept.position
        if key not in self._tables:
            self._tables[key] = np.min([option.repeated for option in self._options(branch, kept)], axis=0)
        return self._tables[key]

    def _options(self, branch: Branch, kept: Cut) -> list[_Option]:
        """All ways to go on behind a branch; the first one keeps nothing."""
        without = np.stack([self._table(child, kept) for child in branch.children])
        ways = len(branch.children) - 1
        plain = _Option(None, without.sum(axis=0) + ways * (branch.work - kept.work), without, 0.0)
        return [plain, *(self._keeping(branch, kept, cut, without) for cut in branch.cuts if self._units(cut) <= UNITS)]

    def _keeping(self, branch: Branch, kept: Cut, cut: Cut, without: Table) -> _Option:
        """The way that keeps a cut of the branch."""
        units, ways, price = self._units(cut), len(branch.children) - 1, cut.work - kept.work
        tables = np.stack([self._table(child, cut) for child in branch.children])
        within = np.full_like(without, np.inf)
        within[:, units:] = tables[:, : UNITS + 1 - units]
        repeated = np.full(UNITS + 1, np.inf)
        gains = within - without
        ranked = -np.sort(-gains[:, units:], axis=0)[:ways]
        saved = np.maximum(0, ranked[:1]).sum(axis=0) + np.maximum(0, ranked[1:] - price).sum(axis=0)
        repeated[units:] = within[:, units:].sum(axis=0) + ways * (branch.work - cut.work) - saved
        return _Option(cut, repeated, gains, price)

    def _units(self, cut: Cut) -> int:
        """Units of memory that the tensors of a cut take; more than there are where they do not fit."""
        size = cut.size * self._images
        if size > self._memory:
            return UNITS + 1
        return -(-size * UNITS // self._memory) if size else 0
