"""From a request to the variables of a network and the sizes that they give to atoms (paper, section 4.3)."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch

from autotailor.ir.alternatives.alternative import of_maps
from autotailor.ir.alternatives.insertion import given_by
from autotailor.ir.blocks.block import Block, Handle, View
from autotailor.ir.blocks.recognition import loose_nodes
from autotailor.ir.blocks.stage import Stage
from autotailor.ir.dimensions.dimension import RESOLUTION, WIDTH, Atom, Dimension, parts_of
from autotailor.ir.elastic_graph import ElasticGraph, merging_gates
from autotailor.ir.errors import SpaceError
from autotailor.ir.graph import Node
from autotailor.ir.junctions import (
    JUNCTION,
    MERGED,
    OPERATOR,
    ORIGINAL,
    OWNER,
    SOURCES,
    kind_of,
    select,
    source_of,
    span_of,
)
from autotailor.ir.proposal.legality import check_enumerable, check_fit, enumerable, fitting, needs_of
from autotailor.ir.proposal.request import ALL, SpaceRequest, choices_of
from autotailor.ir.space.architecture import Architecture, AtomRule, Fixed, Listed, Scaled
from autotailor.ir.space.gate import Gate, both
from autotailor.ir.space.joint_sizes import joint_sizes
from autotailor.ir.space.variable import Choice, Number, Space, Variable

STEM, HEAD = "stem", "head"
DEPTH = "depth"
_PROPOSED_WIDTHS = (0.5, 0.75, 1.0)
_PROPOSED_RESOLUTIONS = (4 / 7, 5 / 7, 6 / 7, 1.0)


@dataclass(eq=False)
class _Draft:
    """A space under construction.

    Attributes:
        request: what is asked for.
        variables: so far.
        rules: of the sizes that the variables set.
        gates: open where the depth of a stage leaves the block.
        unmerged: open where no merged block that begins before the block stands in for it as well.
    """

    request: SpaceRequest
    variables: list[Variable] = field(default_factory=list)
    rules: dict[Atom, AtomRule] = field(default_factory=dict)
    gates: dict[str, Gate] = field(default_factory=dict)
    unmerged: dict[str, Gate] = field(default_factory=dict)

    def gate(self, owner: str) -> Gate | None:
        """Where a stage or block is there that owns a variable; None where that is always so."""
        return both(self.gates.get(owner), self.unmerged.get(owner))

    def wants(self, owner: str, kind: str) -> bool:
        return not any(fnmatch(_name(owner, kind), pattern) for pattern in self.request.skip)

    def add(self, owner: str, kind: str, choices: Sequence[Choice], default: Choice, least: int = 0) -> str:
        """Adds a variable, gated where its owner can be left out; returns the name of the variable."""
        name, ordered = _name(owner, kind), tuple(choices)
        gate = self.gate(owner)
        self.variables.append(Variable(name, kind, ordered, ordered.index(default), gate, owner, least))
        return name


def _name(owner: str, kind: str) -> str:
    """Name of the variable of a kind that a stage or block owns; the whole network is no owner."""
    return f"{owner}.{kind}" if owner else kind


def with_space(elastic: ElasticGraph, request: SpaceRequest) -> ElasticGraph:
    """The network with the variables that are asked for, whatever its variables were.

    Raises:
        SpaceError: a choice larger than the weights hold, one that does not fit, or a name that matches nothing.
    """
    _check_names(request, elastic.blocks)
    _check_stages(request, elastic.stages)
    _check_skipped(request, elastic)
    draft = _drafted(elastic, request)
    architecture = Architecture(Space(tuple(draft.variables)), draft.rules)
    varied = replace(elastic, architecture=architecture, gates=draft.gates)
    needs = needs_of(elastic)
    if request.is_proposal:
        varied = replace(varied, architecture=fitting(architecture, needs)[0])
        return replace(varied, architecture=_merge(enumerable(varied)))
    check_fit(architecture, needs, elastic.propagation.resolution_step)
    check_enumerable(varied)
    return replace(varied, architecture=_merge(architecture))


def _drafted(elastic: ElasticGraph, request: SpaceRequest) -> _Draft:
    """All variables that are asked for, in the order of the space: resolution, stem, stage by stage, head."""
    draft = _Draft(request)
    _add_resolution(draft, elastic)
    widths, kept = _stage_widths(elastic), _kept(draft, elastic.stages)
    _add_common_width(draft, elastic.blocks, {owner: widths[owner] for owner in widths if owner != HEAD})
    _add_width(draft, STEM, widths[STEM])
    for stage in elastic.stages:
        _add_depth(draft, stage, kept)
        _add_width(draft, stage.name, widths[stage.name])
        for block in stage.blocks:
            gate = draft.gate(block.name)
            operator = _add_operator(draft, elastic, block, kept)
            for kind in block.handles:
                _add_handle(draft, block, kind)
            if operator is not None:
                _gate_handles(draft, elastic, block, operator, gate)
    if request.width is None or HEAD in request.width:
        _add_width(draft, HEAD, widths[HEAD])
    return draft


def _check_names(request: SpaceRequest, blocks: Sequence[Block]) -> None:
    names = {ALL, *(b.kind for b in blocks), *(b.name for b in blocks)}
    if unknown := sorted(set(request.alternatives) - names):
        raise SpaceError(
            f"space.alternatives.blocks: no block is named or of kind {unknown[0]!r}; the network has "
            f"{sorted({b.kind for b in blocks})}, block1..{len(blocks)}"
        )
    for name, kinds in (request.blocks or {}).items():
        if name not in {b.kind for b in blocks} | {b.name for b in blocks}:
            own = sorted({b.kind for b in blocks})
            raise SpaceError(
                f"space.blocks: no block is named or of kind {name!r}; the network has {own}, block1..{len(blocks)}"
            )
        offered = {kind for b in blocks if name in (b.kind, b.name) for kind in b.handles}
        unknown = sorted(set(kinds) - offered)
        if unknown:
            raise SpaceError(f"space.blocks: {name} has no variable {unknown}; it offers {sorted(offered) or 'none'}")


def _check_stages(request: SpaceRequest, stages: Sequence[Stage]) -> None:
    names = [stage.name for stage in stages]
    for key, by_owner, owners in (("depth", request.depth, names), ("width", request.width, [STEM, *names, HEAD])):
        unknown = sorted(set(by_owner or ()) - {ALL, *owners})
        if unknown:
            raise SpaceError(f"space.{key}: unknown {unknown}; the network has {owners}")


def _check_skipped(request: SpaceRequest, elastic: ElasticGraph) -> None:
    owners: dict[str, Iterable[str]] = {"": [RESOLUTION], STEM: [WIDTH], HEAD: [WIDTH]}
    owners |= {stage.name: [DEPTH, WIDTH] for stage in elastic.stages}
    owners |= {block.name: [*block.handles, *[OPERATOR] * bool(_joints(block))] for block in elastic.blocks}
    names = [_name(owner, kind) for owner, kinds in owners.items() for kind in kinds]
    for pattern in request.skip:
        if not any(fnmatch(name, pattern) for name in names):
            raise SpaceError(
                f"space.skip: {pattern!r} matches no variable of the network, whose names are like {names[:6]}; "
                "autotailor inspect lists all"
            )


def _add_resolution(draft: _Draft, elastic: ElasticGraph) -> None:
    propagation = elastic.propagation
    spatial = propagation.dimensions[elastic.graph.input][2:]
    meta = spatial[0].meta if spatial else 0
    choices, step = draft.request.resolution, propagation.resolution_step
    if not spatial or not isinstance(spatial[0], Atom):
        if choices and set(choices) != {meta}:
            raise SpaceError("space.resolution: that of this network is static, leave it out of the space")
        return
    if choices is None:
        unit = math.lcm(8, step)
        choices = tuple(sorted({min(meta, round(meta * f / unit) * unit or meta) for f in _PROPOSED_RESOLUTIONS}))
    draft.request.check_resolutions(meta)
    if any(c % step for c in choices):
        raise SpaceError(
            f"space.resolution: those of this network must be multiples of {step}, which its maps are divided by; "
            f"asked for {list(choices)}"
        )
    choices = tuple(sorted({*choices, meta}))
    if len(choices) > 1 and draft.wants("", RESOLUTION):
        draft.rules[spatial[0]] = Fixed(draft.add("", RESOLUTION, choices, meta))


def _depths(draft: _Draft, stage: Stage) -> tuple[int, ...]:
    """The choices of a stage's depth; none where not all of them are legal."""
    choices = choices_of(draft.request.depth, stage.name, tuple(range(min(3, len(stage.removable) + 1))))
    choices = tuple(sorted({0, *choices}))
    if max(choices) > len(stage.removable) and stage.name in (draft.request.depth or {}):
        raise SpaceError(
            f"space.depth: of {stage.name} at most {len(stage.removable)} of {len(stage.blocks)} blocks can be removed"
            f"; asked for depth {list(choices)}"
        )
    legal = len(choices) > 1 and max(choices) <= len(stage.removable) and draft.wants(stage.name, DEPTH)
    return choices if legal else ()


def _kept(draft: _Draft, stages: Sequence[Stage]) -> dict[str, tuple[str, tuple[bool, ...]]]:
    """Each block that depth can remove: the name of its stage, and whether it is there under each choice."""
    kept = {}
    for stage in stages:
        choices = _depths(draft, stage)
        for nth, block in enumerate(stage.removable[: max(choices, default=0)], 1):
            kept[block.name] = (stage.name, tuple(removed < nth for removed in choices))
    return kept


def _add_depth(draft: _Draft, stage: Stage, kept: Mapping[str, tuple[str, tuple[bool, ...]]]) -> None:
    """Depth of a stage, where all its choices are legal, and the gates of the blocks that it can remove."""
    if choices := _depths(draft, stage):
        name = draft.add(stage.name, DEPTH, choices, 0, len(choices) - 1)
        for block in (block for block in stage.removable if block.name in kept):
            draft.gates[block.name] = Gate((name,), kept[block.name][1])


def _stage_widths(elastic: ElasticGraph) -> dict[str, dict[Atom, int]]:
    """Channel atoms, with their granules, of the stem, each stage and the head.

    The widths of an operator between blocks belong to the stage that follows, unless another stage owns the widths.
    """
    view, blocks, stages = View(elastic.graph, elastic.propagation), elastic.blocks, elastic.stages
    widths: dict[str, dict[Atom, int]] = {STEM: {}, **{stage.name: {} for stage in stages}, HEAD: {}}
    for stage in stages:
        for width in stage.widths:
            widths[stage.name].update(_scalable(width))
    owned = {atom for atoms in widths.values() for atom in atoms}
    owners = {block.name: stage.name for stage in stages for block in stage.blocks}
    for node, following in loose_nodes(view.graph, blocks, view):
        owner = HEAD if following is None else STEM if following is blocks[0] else owners[following.name]
        atoms = _scalable(view.channels(node.outputs[0]))
        widths[owner].update({atom: granule for atom, granule in atoms.items() if atom not in owned})
    return widths


def _add_width(draft: _Draft, owner: str, atoms: Mapping[Atom, int]) -> None:
    free = {atom: granule for atom, granule in atoms.items() if atom not in draft.rules}
    choices = choices_of(draft.request.width, owner, _PROPOSED_WIDTHS)
    if not free or len(choices) < 1 or not draft.wants(owner, WIDTH):
        return
    _scale(draft, owner, choices, free)


def _scale(draft: _Draft, owner: str, choices: Sequence[Number], atoms: Mapping[Atom, int]) -> None:
    """One variable for the widths of some atoms, as shares of what they are."""
    ordered = tuple(sorted({*(float(c) for c in choices), 1.0}))
    if len(ordered) > 1:
        name = draft.add(owner, WIDTH, ordered, 1.0)
        for atom, granule in atoms.items():
            draft.rules[atom] = Scaled(name, None, draft.request.divisor, granule, 1.0)


def _add_common_width(draft: _Draft, blocks: Sequence[Block], widths: Mapping[str, Mapping[Atom, int]]) -> None:
    """One width for stem, stages and the hidden channels of all blocks, where one scale is asked for."""
    if choices := draft.request.scale:
        atoms = {atom: granule for own in widths.values() for atom, granule in own.items()}
        for block in blocks:
            hidden = (h for kind, h in block.handles.items() if kind == WIDTH or isinstance(h.relative_to, str))
            atoms.update({atom: block.granules.get(atom, 1) for handle in hidden for atom in handle.atoms})
        _scale(draft, "", choices, atoms)


def _joints(block: Block) -> list[Node]:
    """The junctions of a block."""
    return [node for node in block.nodes if node.kind == JUNCTION]


def _add_operator(
    draft: _Draft, elastic: ElasticGraph, block: Block, kept: Mapping[str, tuple[str, tuple[bool, ...]]]
) -> Variable | None:
    """The variable that chooses among the alternatives of a block, and the ranks that its choices give."""
    by_kind = draft.request.alternatives_of(block.name, block.kind)
    offered = {source for node in _joints(block) for source in node.get(SOURCES)}
    choices = [choice for own in by_kind.values() for choice in own if offered & {choice, kind_of(choice)}]
    following = elastic.blocks[elastic.blocks.index(block) :]
    choices = [choice for choice in choices if _stay_together(following[: span_of(choice) + 1], kept)]
    if not choices or not draft.wants(block.name, OPERATOR):
        return None
    choices.sort(key=lambda choice: kind_of(choice) == MERGED)  # the last choice leaves least
    name = draft.add(block.name, OPERATOR, (ORIGINAL, *choices), ORIGINAL, len(choices))
    view, original, variable = View(elastic.graph, elastic.propagation), elastic.original, draft.variables[-1]
    for joint in (joint for joint in _joints(block) if not joint.get(OWNER)):
        node = original.producers[given_by(joint)]
        for kind, own in ((kind, own) for kind, own in by_kind.items() if kind in of_maps()):
            for inner, listed in of_maps()[kind].sizes(original, node, own).items():
                written = (atom for each in block.nodes if each.name == inner for atom in view.written(each))
                draft.rules.update((atom, Listed(name, listed)) for atom in written)
    for other, gate in zip(following[1:], merging_gates(variable)[1:], strict=False):
        earlier = draft.unmerged.get(other.name)
        draft.unmerged[other.name] = gate if earlier is None else earlier & gate
    return variable


def _stay_together(blocks: Sequence[Block], kept: Mapping[str, tuple[str, tuple[bool, ...]]]) -> bool:
    """Whether depth never removes one of some blocks and leaves the first, so that one block may stand in for all."""
    return all(kept.get(block.name) in (None, kept.get(blocks[0].name)) for block in blocks)


def _gate_handles(draft: _Draft, elastic: ElasticGraph, block: Block, operator: Variable, gate: Gate | None) -> None:
    """Closes the variables of a block whose sizes nothing has that an alternative leaves there."""
    dimensions, joints = elastic.propagation.dimensions, _joints(block)
    present: list[set[Atom]] = []
    for choice in operator.choices:
        nodes = select(elastic.graph, {node.name: source_of(node, choice) for node in joints})
        names = (name for node in nodes for name in (*node.inputs, *node.outputs) if name)
        present.append({atom for name in names for axis in dimensions[name] for atom in axis.atoms()})
    for position, variable in enumerate(draft.variables):
        if variable.owner == block.name and variable.kind != OPERATOR:
            atoms = {atom for atom, rule in draft.rules.items() if rule.variable == variable.name}
            table = tuple(bool(atoms & there) for there in present)
            if not all(table):
                draft.variables[position] = replace(variable, gate=both(gate, Gate((operator.name,), table)))


def _add_handle(draft: _Draft, block: Block, kind: str) -> None:
    """The variable of one handle of a block: ratios of a width, or sizes."""
    handle = block.handles[kind]
    handle = replace(handle, atoms=tuple(atom for atom in handle.atoms if atom not in draft.rules))
    if not handle.atoms or not draft.wants(block.name, kind):
        return
    base = _base(block, handle)
    in_channels = isinstance(handle.relative_to, str)
    granules = [block.granules.get(a, 1) if in_channels else 1 for a in handle.atoms]
    largest = max(a.meta * g for a, g in zip(handle.atoms, granules, strict=True))
    default: Number = float(f"{largest / base.meta:.6g}") if base else largest
    choices = _handle_choices(draft.request, block, kind, default)
    if not choices:
        return
    _check_choices(block, kind, handle, choices, default)
    default = next((c for c in choices if math.isclose(c, default, rel_tol=1e-6)), default)
    ordered = tuple(sorted({*choices, default}))
    if len(ordered) < 2:
        return
    name = draft.add(block.name, kind, ordered, default)
    for atom, granule in zip(handle.atoms, granules, strict=True):
        share = atom.meta * granule / largest
        scaled = Scaled(name, base, draft.request.divisor, granule, default, share)
        draft.rules[atom] = scaled if base else Fixed(name)


def _base(block: Block, handle: Handle) -> Dimension | None:
    """The dimension that a ratio multiplies; None for an absolute handle."""
    ends = {"in": block.width_in, "out": block.width_out}
    return ends[handle.relative_to] if isinstance(handle.relative_to, str) else handle.relative_to


def _handle_choices(request: SpaceRequest, block: Block, kind: str, default: Number) -> tuple[Number, ...]:
    """Choices that the configuration lists for a handle, by the block's name or else by its kind; or proposed ones."""
    if request.blocks is not None:
        sections = (request.blocks.get(key, {}) for key in (block.name, block.kind))
        return next((tuple(section[kind]) for section in sections if kind in section), ())
    handle = block.handles[kind]
    if handle.relative_to is not None:
        return tuple(float(f"{default * factor:.6g}") for factor in _PROPOSED_WIDTHS)
    sizes = handle.sizes()
    return sizes if handle.step > 1 else tuple({sizes[(len(sizes) - 1) // 2], sizes[-1]})


def _check_choices(block: Block, kind: str, handle: Handle, choices: Sequence[Number], default: Number) -> None:
    label = kind.replace("_", " ")
    if any(c > default * (1 + 1e-6) for c in choices):
        raise SpaceError(
            f"space: {block.name} ({block.kind}) holds weights for {label} {default:g} at most; "
            f"asked for {list(choices)}"
        )
    if handle.relative_to is None and not all(handle.allows(c) for c in choices):
        raise SpaceError(
            f"space: {block.name} ({block.kind}) can have {label} {list(handle.sizes())}; asked for {list(choices)}"
        )


def _scalable(width: Dimension) -> dict[Atom, int]:
    """Atoms of a width, each with the number of channels that one unit of the atom stands for."""
    counts: dict[Atom, int] = {}
    for part in parts_of(width):
        atoms = list(part.atoms())
        if len(atoms) == 1 and not part.is_spatial:
            counts[atoms[0]] = counts.get(atoms[0], 0) + part.meta // atoms[0].meta
    return counts


def _merge(architecture: Architecture) -> Architecture:
    """Merges choices that rounding made equal; a variable with one choice left is dropped."""
    merged: list[tuple[str, Choice, Choice]] = []
    places: dict[str, list[int]] = {}
    listed = [rule for rule in architecture.rules.values() if isinstance(rule, Listed)]
    sized = {"", *(kind_of(choice) for rule in listed for choice, _ in rule.listed)}
    for variable in architecture.space:
        kept: dict[tuple[object, ...], Choice] = {}
        for choice in sorted(variable.choices, key=lambda c: c != variable.choices[variable.default]):
            sizes = _sizes_of_choice(architecture, variable, choice)
            kind = kind_of(choice)
            key = (*sizes, kind if kind in sized else choice) if sizes else (len(kept),)
            if key in kept:
                merged.append((variable.name, choice, kept[key]))
            else:
                kept[key] = choice
        places[variable.name] = [place for place, c in enumerate(variable.choices) if c in kept.values()]
    variables = [
        replace(v.keeping([v.choices[place] for place in places[v.name]]), gate=_among(v.gate, places))
        for v in architecture.space
        if len(places[v.name]) > 1
    ]
    names = {v.name for v in variables}
    rules = {atom: rule for atom, rule in architecture.rules.items() if rule.variable in names}
    return Architecture(Space(tuple(variables), tuple(merged)), rules)


def _among(gate: Gate | None, places: Mapping[str, Sequence[int]]) -> Gate | None:
    """A gate over the choices that are left of its variables, by their places."""
    if gate is None or all(len(places[n]) == size for n, size in zip(gate.variables, gate.shape, strict=True)):
        return gate
    narrowed = gate.keeping(places).reduced
    return narrowed if isinstance(narrowed, Gate) else None


def _sizes_of_choice(architecture: Architecture, variable: Variable, choice: Choice) -> tuple[int, ...]:
    """Sizes of the atoms that a variable governs, under one choice and all sizes of the atoms' bases."""
    return tuple(
        size
        for atom, rule in architecture.rules.items()
        if rule.variable == variable.name
        for size in _sizes_of_atom(architecture, atom, rule, {variable.name: choice})
    )


def _sizes_of_atom(
    architecture: Architecture, atom: Atom, rule: AtomRule, assignment: Mapping[str, Choice]
) -> Iterator[int]:
    bases = rule.bases()
    stand_ins = {base: Atom(f"base{i}", base.meta) for i, base in enumerate(bases)}
    free = rule.substituted(stand_ins)
    for sizes in joint_sizes(architecture, bases).sizes.tolist():
        yield free.size(atom, assignment, dict(zip(stand_ins.values(), sizes, strict=True)).__getitem__)
