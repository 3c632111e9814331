"""Trees of prefixes for tests: what a plan costs, and the least that any order of runs with any kept tensors costs."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations, count, product

from hypothesis import strategies as st

from autotailor.accuracy.sharing.plan import Visit
from autotailor.accuracy.sharing.steps import Steps
from autotailor.accuracy.sharing.tree import START, Branch, Cut


def chain(keys: Sequence[int], side: int = 8) -> Steps:
    """Steps in a chain, of which step i costs i + 1; between two steps lies one tensor of 1 to 3 bytes."""
    names = tuple(f"t{position}" for position in range(len(keys) + 1))
    work = tuple(accumulate(range(1, len(keys) + 1), initial=0.0))
    sizes = {name: 1 + i % 3 for i, name in enumerate(names)}
    return Steps((1, 3, side, side), tuple(keys), work, tuple((name,) for name in names), sizes)


@st.composite
def trees(draw: st.DrawFn) -> Branch:
    """Trees of at most five leaves and six cuts, with any sizes and works; cuts grow smaller along a branch."""
    leaves, cuts = iter(range(5)), iter(range(6))

    def branch(work: float, position: int, share: int) -> Branch:
        if share == 1:
            return Branch((next(leaves),), work + draw(st.integers(1, 5)))
        found, size = [], 5
        while size > 1 and draw(st.booleans()) and next(cuts, None) is not None:
            position, work, size = position + 1, work + draw(st.integers(1, 5)), draw(st.integers(1, size - 1))
            found.append(Cut(position, work, size))
        end = work + draw(st.integers(0, 3))
        parts = [draw(st.integers(1, share - 1))]
        parts += [part for part in [share - parts[0]] if part]
        if parts[-1] > 1 and draw(st.booleans()):
            parts[-1:] = [1, parts[-1] - 1]
        children = tuple(branch(end, position, part) for part in parts)
        return Branch(tuple(i for c in children for i in c.subnets), end, tuple(found), children)

    return branch(0, 0, draw(st.integers(2, 5)))


def paths(branch: Branch, above: tuple[Cut, ...] = ()) -> Iterator[tuple[Branch, tuple[Cut, ...]]]:
    """Each leaf with all cuts on its way, in order."""
    if not branch.children:
        yield branch, above
    for child in branch.children:
        yield from paths(child, (*above, *branch.cuts))


def replayed(tree: Branch, visits: Sequence[Visit]) -> tuple[float, int]:
    """What visits cost, and the most that they keep; fails where a run starts at what is not kept for it."""
    ways = {leaf.subnets: (leaf, cuts) for leaf, cuts in paths(tree)}
    assert sorted(visit.subnets for visit in visits) == sorted(ways)
    kept: dict[int, Cut] = {}
    cost, most = 0.0, 0
    for visit in visits:
        leaf, cuts = ways[visit.subnets]
        start = kept[visit.start] if visit.start else START
        assert start is START or any(cut is start for cut in cuts)
        kept = {p: cut for p, cut in kept.items() if p < visit.start or (p == visit.start and not visit.releases)}
        for cut in visit.keeps:
            assert cut.position > visit.start
            assert any(each is cut for each in cuts)
            kept[cut.position] = cut
            most = max(most, sum(each.size for each in kept.values()))
        cost += leaf.work - start.work
    return cost, most


def least_cost(branch: Branch, memory: int, kept: Cut = START) -> float:
    """The least repeated work behind a branch: all cuts, and all sets of children that run without them, in turn."""
    if not branch.children:
        return 0.0
    ways = len(branch.children) - 1
    without = [least_cost(child, memory, kept) for child in branch.children]
    least = sum(without) + ways * (branch.work - kept.work)
    for cut in branch.cuts:
        if cut.size > memory:
            continue
        within = [least_cost(child, memory - cut.size, cut) for child in branch.children]
        for chosen in product((False, True), repeat=len(within)):
            if not all(chosen):
                late = max(0, sum(chosen) - 1) * (cut.work - kept.work)
                costs = sum(w if outside else i for i, w, outside in zip(within, without, chosen, strict=True))
                least = min(least, costs + ways * (branch.work - cut.work) + late)
    return least


def least_of_all_orders(tree: Branch, memory: int) -> float:
    """The least cost of any order of the leaves in which any tensors are kept and dropped at any time: Dijkstra."""
    leaves = list(paths(tree))
    cuts = {id(cut): cut for _, way in leaves for cut in way}
    queue: list[tuple[float, int, frozenset[int], frozenset[int]]] = [(0.0, 0, frozenset(), frozenset())]
    seen: set[tuple[frozenset[int], frozenset[int]]] = set()
    number = count()
    while True:
        cost, _, done, kept = heapq.heappop(queue)
        if len(done) == len(leaves):
            return cost
        if (done, kept) in seen:
            continue
        seen.add((done, kept))
        for i, (leaf, way) in enumerate(leaves):
            for start in [START, *(cut for cut in way if id(cut) in kept)] if i not in done else []:
                can = kept | {id(cut) for cut in way if cut.position > start.position}
                for chosen in (set_ for size in range(len(can) + 1) for set_ in combinations(sorted(can), size)):
                    if sum(cuts[each].size for each in chosen) <= memory:
                        after = cost + leaf.work - start.work
                        heapq.heappush(queue, (after, next(number), done | {i}, frozenset(chosen)))
