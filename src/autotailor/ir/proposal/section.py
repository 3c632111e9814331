"""The ``space`` section that describes a space: the text that a person would have to write to get the space.

Blocks are described by kind, and by name only where a block differs from the others of its kind.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from autotailor.ir.blocks.block import Block
from autotailor.ir.dimensions.dimension import RESOLUTION, WIDTH
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import SpaceError
from autotailor.ir.proposal.request import ALL, SpaceRequest
from autotailor.ir.proposal.variables import DEPTH, HEAD, STEM, with_space
from autotailor.ir.space.variable import Choice, Space

Choices = tuple[Choice, ...]
Section = dict[str, Any]


def space_section(elastic: ElasticGraph, request: SpaceRequest) -> Section:
    """A section that ``SpaceRequest.from_config`` reads, and that gives the same variables.

    Args:
        elastic: the network, whose space is described.
        request: the request that the space was made from; the section repeats its divisor and the skipped variables.
    """
    space, stages = elastic.space, elastic.stages
    for depth, width in itertools.product(_FORMS, repeat=2):
        section: Section = {"divisor": request.divisor}
        section["resolution"] = list(_choices(space, "", RESOLUTION))
        section["depth"] = depth({s.name: _choices(space, s.name, DEPTH) for s in stages})
        section["width"] = width({o: _choices(space, o, WIDTH) for o in (STEM, *(s.name for s in stages), HEAD)})
        section["scale"] = list(_choices(space, "", WIDTH))
        section["blocks"] = _by_block(space, elastic.blocks)
        section["alternatives"] = _alternatives(request)
        section["skip"] = list(request.skip)
        section = {key: value for key, value in section.items() if value}
        if _says(section, elastic):
            break
    return section


def _says(section: Section, elastic: ElasticGraph) -> bool:
    """Whether a section gives a network's space; one for all owners may ask for what does not fit some of them."""
    try:
        return with_space(elastic, SpaceRequest.from_config(section)).space.variables == elastic.space.variables
    except SpaceError:
        return False


def _as_list(by_owner: Mapping[str, Choices]) -> Any:
    """One list for all stages."""
    return list(_most_common(by_owner.values()))


def _with_exceptions(by_owner: Mapping[str, Choices]) -> Any:
    """The usual choices for all stages; stages with other choices, and the head, by name."""
    common = _most_common(by_owner.values())
    others = {
        owner: list(choices) for owner, choices in by_owner.items() if choices and (choices != common or owner == HEAD)
    }
    return {**others, ALL: list(common)}


def _by_name(by_owner: Mapping[str, Choices]) -> Any:
    """Every stage that has choices, by name."""
    return {owner: list(choices) for owner, choices in by_owner.items() if choices}


_FORMS = (_as_list, _with_exceptions, _by_name)  # the first form that gives the space is taken


def _by_block(space: Space, blocks: Sequence[Block]) -> dict[str, dict[str, list[Choice]]]:
    """Kind of block to its usual choices, followed by the blocks that differ, by name."""
    by_kind: dict[str, dict[str, list[Choice]]] = {}
    by_name: dict[str, dict[str, list[Choice]]] = {}
    for kind in dict.fromkeys(block.kind for block in blocks):
        same = [block for block in blocks if block.kind == kind]
        for handle in dict.fromkeys(handle for block in same for handle in block.handles):
            by_block = {b.name: _choices(space, b.name, handle) for b in same if handle in b.handles}
            common = _most_common(by_block.values())
            if not common:
                continue
            by_kind.setdefault(kind, {})[handle] = list(common)
            for name, choices in by_block.items():
                if choices != common:
                    by_name.setdefault(name, {})[handle] = list(choices)
    order: Mapping[str, int] = {block.name: position for position, block in enumerate(blocks)}
    return {**by_kind, **dict(sorted(by_name.items(), key=lambda item: order[item[0]]))}


def _choices(space: Space, owner: str, kind: str) -> Choices:
    variable = space.find(owner, kind)
    return () if variable is None else variable.choices


def _alternatives(request: SpaceRequest) -> Section:
    """What asks for the alternatives of a request."""
    by_block = {
        name: {kind: _asked(choices) for kind, choices in own.items()} for name, own in request.alternatives.items()
    }
    every = by_block.pop(ALL, {})
    return {**every, "blocks": by_block} if by_block else every


def _asked(choices: Sequence[str]) -> Any:
    """What asks for choices of a kind of alternative: their parameters, or true where they have none."""
    parameters = [float(parameter) for _, _, parameter in (choice.partition(":") for choice in choices) if parameter]
    return [int(parameter) if parameter.is_integer() else parameter for parameter in parameters] or True


def _most_common(offered: Iterable[Choices]) -> Choices:
    """The choices that most owners have; owners without the variable do not count."""
    counts = Counter(choices for choices in offered if choices)
    return counts.most_common(1)[0][0] if counts else ()
