"""The tree of the prefixes that SubNets share.

Each SubNet is a path from the root to a leaf. A branch is the longest run of steps that the same SubNets have in
common, so that a branch ends where SubNets part, or where a SubNet ends::

    conv1 bn1 relu1 | conv2 (8 channels) bn2 ...        the SubNets 0 and 1 share three steps;
                    | conv2 (4 channels) bn2 ...        their tree has a root with one branch, which has two branches

The tensors that are live at a position of a branch are all that is needed to run every SubNet of the branch from there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from autotailor.accuracy.sharing.steps import Steps


@dataclass(frozen=True)
class Cut:
    """A position at which tensors can be kept.

    Attributes:
        position: in the schedule of each SubNet of the branch.
        work: cost of all steps before the position, per image.
        size: bytes of the tensors, per image.
        names: of the tensors.
    """

    position: int
    work: float = 0.0
    size: int = 0
    names: tuple[str, ...] = ()


START = Cut(0)
"""Where the images are; they are there in any case."""


@dataclass(frozen=True)
class Branch:
    """Steps that some SubNets have in common.

    Attributes:
        subnets: positions of the SubNets in the list that the tree was grown from, in the order of the leaves.
        work: cost of all steps up to the end of the branch, those before the branch included, per image.
        cuts: where tensors can be kept, with rising position. A cut is left out where a later cut of the same branch
            needs no more memory. A leaf has none.
        children: the branches that follow; none where the SubNets end, which are then all alike.
    """

    subnets: tuple[int, ...]
    work: float
    cuts: tuple[Cut, ...] = ()
    children: tuple[Branch, ...] = ()


def grow(steps: Sequence[Steps]) -> Branch:
    """The tree of SubNets; ``steps`` has one entry for each. SubNets of one resolution are one branch of the root."""
    alike: dict[Hashable, list[int]] = {}
    for i, each in enumerate(steps):
        alike.setdefault(each.source, []).append(i)
    children = [_branch(steps, tuple(members), 0) for members in alike.values()]
    return children[0] if len(children) == 1 else Branch(_leaves(children), 0.0, (), tuple(children))


def _branch(steps: Sequence[Steps], subnets: tuple[int, ...], start: int) -> Branch:
    """The branch of SubNets that have the steps before ``start`` in common."""
    first, end = steps[subnets[0]], start
    while end < len(first.keys) and all(_step(steps[i], end) == first.keys[end] for i in subnets[1:]):
        end += 1
    if all(len(steps[i].keys) == end for i in subnets):
        return Branch(subnets, first.work[end])
    apart: dict[Hashable, list[int]] = {}
    for i in subnets:
        apart.setdefault(_step(steps[i], end), []).append(i)
    children = tuple(_branch(steps, tuple(members), end) for members in apart.values())
    return Branch(_leaves(children), first.work[end], _cuts([steps[i] for i in subnets], start, end), children)


def _leaves(children: Sequence[Branch]) -> tuple[int, ...]:
    return tuple(i for child in children for i in child.subnets)


def _step(steps: Steps, position: int) -> Hashable:
    return steps.keys[position] if position < len(steps.keys) else None


def _cuts(steps: Sequence[Steps], start: int, end: int) -> tuple[Cut, ...]:
    """Cuts behind ``start`` up to ``end`` that no later cut replaces."""
    cuts: list[Cut] = []
    for position in range(end, start, -1):
        names = tuple(dict.fromkeys(name for each in steps for name in each.live[position]))
        cut = Cut(position, steps[0].work[position], sum(steps[0].sizes[name] for name in names), names)
        if not cuts or cut.size < cuts[-1].size:
            cuts.append(cut)
    return tuple(reversed(cuts))
