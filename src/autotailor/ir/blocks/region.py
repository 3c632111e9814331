"""The trunk of a network: operators and fork-join regions in a row (paper, section 4.1.3, step 1).

Where a tensor has several readers, the paths of the readers are traced until the paths converge. The join is the
immediate post-dominator of the fork. A path is a row of operators and regions again, so that regions nest: a
squeeze-and-excitation gate inside an inverted residual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autotailor.ir.graph import Graph, Node


@dataclass(frozen=True)
class Region:
    """The part of a graph between a tensor that forks and the node where all paths from the tensor converge.

    Attributes:
        fork: name of the tensor; several nodes read the tensor, or one node that writes several tensors.
        join: node where the paths meet.
        paths: one row for each edge out of the fork, in the order of the join's inputs where possible. The row of an
            identity is empty. None where the interior does not decompose into paths.
        nodes: every node of the region, the join included, in topological order.
    """

    fork: str
    join: Node
    paths: tuple[Row, ...] | None
    nodes: tuple[Node, ...]

    @property
    def output(self) -> str:
        """Name of the tensor behind the join."""
        return self.join.outputs[0]


Item = Node | Region
Row = tuple[Item, ...]
"""Operators and regions one behind the other: each reads what the one before it writes."""


def item_nodes(item: Item) -> tuple[Node, ...]:
    """All nodes of an item."""
    return item.nodes if isinstance(item, Region) else (item,)


def item_output(item: Item) -> str:
    """Tensor that an item hands to the next one."""
    return item.output if isinstance(item, Region) else item.outputs[0]


def flat_nodes(row: Row) -> Iterator[Node]:
    """All nodes of a row."""
    for item in row:
        yield from item_nodes(item)


def parse_trunk(graph: Graph) -> Row:
    """The whole network as one row, which ends early at what cannot be followed (several inputs at once).

    Args:
        graph: with one output (``Graph.closed``).
    """
    return _row(graph, graph.input, stop=None)[0]


def _row(graph: Graph, tensor: str, stop: Node | None) -> tuple[Row, str]:
    """Follows a tensor up to the node ``stop``; returns the items on the way and the last tensor."""
    items: list[Item] = []
    while tensor != graph.output:
        readers = graph.consumers.get(tensor, ())
        if len(readers) == 1 and len(readers[0].outputs) == 1:
            node = readers[0]
            if node == stop or len(set(graph.activations(node))) != 1:
                break
            item: Item = node
        else:
            region = _region(graph, tensor, readers)
            if region is None or (stop is not None and stop in region.nodes):
                break
            item = region
        items.append(item)
        tensor = item_output(item)
    return tuple(items), tensor


def _region(graph: Graph, fork: str, readers: tuple[Node, ...]) -> Region | None:
    """The smallest region from a tensor with several readers, or with one reader that writes several tensors."""
    for join in _joins(graph, readers):
        inside = _between(graph, fork, join, readers) if len(join.outputs) == 1 else None
        if inside is not None:
            return Region(fork, join, _paths(graph, fork, join, readers), inside)
    return None


def _joins(graph: Graph, readers: tuple[Node, ...]) -> Iterator[Node]:
    """Nodes that every path from all readers passes, the nearest first; never an only reader itself."""
    if not readers:
        return
    by_name = {node.name: node for node in graph.nodes}

    def chain(node: Node) -> list[str]:
        names = [node.name]
        while (following := graph.post_dominators.get(names[-1])) is not None and following != names[-1]:
            names.append(following)
        return names

    chains = [chain(node) for node in readers]
    common = set(chains[0]).intersection(*chains[1:])
    yield from (by_name[name] for name in chains[0][len(readers) == 1 :] if name in common)


def _between(graph: Graph, fork: str, join: Node, readers: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """Nodes from some readers of the fork to the join; None where another tensor enters or leaves on the way."""
    reached: set[str] = set()
    inside: list[Node] = []
    starts = {reader.name for reader in readers}
    for node in graph.nodes:
        activations = graph.activations(node)
        if node.name not in starts and not any(name in reached for name in activations):
            continue
        if not all(name in reached or name == fork for name in activations):
            return None
        inside.append(node)
        if node == join:
            return tuple(inside)
        reached.update(node.outputs)
    return None


def _paths(graph: Graph, fork: str, join: Node, readers: tuple[Node, ...]) -> tuple[Row, ...] | None:
    """One row for each operand of the join, each starting at the fork; None where the region has no such rows.

    Readers that meet before the join (Sigmoid and Mul of a SiLU on the main path) make a region inside their path.
    """
    ends, joins = _operands(graph, join)
    by_end: dict[str, Row] = {}
    groups = _groups(graph, readers, joins)
    if len(groups) == 1:
        return None
    for group in groups:
        first = _start(graph, fork, group, joins)
        if first is None:
            return None
        rest, end = _row(graph, item_output(first[0]), stop=join) if first else ((), fork)
        by_end[end] = (*first, *rest)
    return tuple(by_end[end] for end in ends) if set(ends) == set(by_end) else None


def _start(graph: Graph, fork: str, group: tuple[Node, ...], joins: frozenset[str]) -> Row | None:
    """First item of the path of some readers: no item where the reader is the join, None where there is no path."""
    if group[0].name in joins:
        return ()
    if len(group) == 1:
        followed = len(set(graph.activations(group[0]))) == 1 and len(group[0].outputs) == 1
        return group if followed else None
    region = _region(graph, fork, group)
    return None if region is None or joins & {node.name for node in region.nodes} else (region,)


def _groups(graph: Graph, readers: tuple[Node, ...], joins: frozenset[str]) -> list[tuple[Node, ...]]:
    """Groups of readers; readers whose paths meet before the joins belong to one group."""
    groups: list[tuple[tuple[Node, ...], set[str]]] = []
    for reader in readers:
        members: tuple[Node, ...] = (reader,)
        reach = _reach(graph, reader, joins)
        for other in [group for group in groups if group[1] & reach]:
            groups.remove(other)
            members, reach = (*other[0], *members), reach | other[1]
        groups.append((members, reach))
    return [members for members, _ in groups]


def _reach(graph: Graph, start: Node, joins: frozenset[str]) -> set[str]:
    """Names of a node and of the nodes behind the node, up to the joins."""
    reached: set[str] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        if node.name not in joins and node.name not in reached:
            reached.add(node.name)
            pending.extend(reader for name in node.outputs for reader in graph.consumers.get(name, ()))
    return reached


def _operands(graph: Graph, join: Node) -> tuple[tuple[str, ...], frozenset[str]]:
    """The operands of a join, and the names of the nodes that join them: a sum of sums is one sum."""
    ends: list[str] = []
    joins = {join.name}
    for name in graph.activations(join):
        node = graph.producers.get(name)
        inner = node is not None and join.kind == node.kind == "Add" and len(graph.consumers[name]) == 1
        if node is not None and inner and len(set(graph.activations(node))) == 2:
            further, nodes = _operands(graph, node)
            ends.extend(further)
            joins |= nodes
        else:
            ends.append(name)
    return tuple(ends), frozenset(joins)


def rows(graph: Graph, region: Region) -> Iterator[tuple[Row, str]]:
    """Rows inside a region, each with the tensor where the row starts: its paths, or the rows between its joins."""
    if region.paths is not None:
        yield from ((path, region.fork) for path in region.paths if path)
        return
    taken = {region.join.name}
    for node in region.nodes:
        sources = set(graph.activations(node))
        if node.name in taken or len(sources) != 1 or len(node.outputs) != 1:
            continue
        rest, _ = _row(graph, node.outputs[0], stop=region.join)
        row = (node, *rest)
        taken.update(inner.name for inner in flat_nodes(row))
        yield row, sources.pop()
