"""Legal choices: windows must fit into what they slide over, together with every choice of every other variable.

A pooling window of 3x3 fits no map of 2x2 pixels, and a reflection of 3 pixels needs a map of 4. A ``Need`` says which
least size a dimension must have, and ``joint_sizes.py`` tabulates the sizes of the dimension under all joint choices. A
space is the product of its variables, so that a choice stays only where it fits with all choices of all others. Depth
needs no care: the needs of a removed block go with the block, and what leaves a removable block has the dimensions of
what enters it.

The operators of a proposed space can also be listed: see ``enumerable``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotailor.ir.dimensions.dimension import RESOLUTION, Dimension, Resolution, Window
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import SpaceError
from autotailor.ir.propagation import Need
from autotailor.ir.space.architecture import Architecture
from autotailor.ir.space.joint_sizes import coupling, joint_sizes
from autotailor.ir.space.variable import Choice, shown


@dataclass(frozen=True)
class Refused:
    """A choice that does not fit, and what it does not fit into."""

    variable: str
    choice: Choice
    need: Need


def enumerable(elastic: ElasticGraph) -> Architecture:
    """The architecture of a network with so few choices that every operator's features can be listed.

    Of the variables that an operator couples too closely, the one with the most choices loses one from the middle.
    """
    architecture = elastic.architecture
    for dimensions in _dimensions_of_operators(elastic):
        while (error := coupling(architecture, dimensions)) is not None:
            most = max((architecture.space[name] for name in error.variables), key=lambda v: len(v.choices))
            spare = [choice for _, choice in _modified(architecture, most.name)]
            architecture = _without(architecture, most.name, spare[len(spare) // 2])
    return architecture


def check_enumerable(elastic: ElasticGraph) -> None:
    """Refuses a network with operators whose features are too many to list.

    Raises:
        CoupledError: names variables that one operator couples too closely.
    """
    for dimensions in _dimensions_of_operators(elastic):
        if (error := coupling(elastic.architecture, dimensions)) is not None:
            raise error


def _dimensions_of_operators(elastic: ElasticGraph) -> Iterator[tuple[Dimension, ...]]:
    """What each node reads and writes, once; operators fused into it have the same dimensions."""
    axes_of = elastic.propagation.dimensions
    coupled = (
        tuple(dict.fromkeys(d for name in (*node.inputs, *node.outputs) for d in axes_of.get(name, ()) if d.meta > 1))
        for node in elastic.graph.nodes
    )
    yield from dict.fromkeys(coupled)


def needs_of(elastic: ElasticGraph) -> tuple[Need, ...]:
    """What a network needs of its dimensions, each dimension once.

    Besides the needs that operators state, something must be left of every axis behind a window. Widths need nothing,
    because rounding never takes the last channel.
    """
    needs: dict[tuple[Dimension, int], Need] = {(n.dimension, n.least): n for n in elastic.propagation.needs}
    for node in elastic.graph.nodes:
        for name in node.outputs:
            for dimension in elastic.propagation.dimensions.get(name, ()):
                if _slides(dimension):
                    need = Need(dimension, 1, f"nothing is left of what {node.kind} {node.name} writes")
                    needs.setdefault((dimension, 1), need)
    return tuple(needs.values())


def fitting(architecture: Architecture, needs: Sequence[Need]) -> tuple[Architecture, tuple[Refused, ...]]:
    """The architecture without the choices that do not fit, and those choices.

    Of choices that only together do not fit, the one goes that takes part in most of them; never a default, because
    the unmodified network fits.
    """
    refused: list[Refused] = []
    for need in needs:
        while (misfit := _misfit(architecture, need)) is not None:
            refused.append(misfit)
            architecture = _without(architecture, misfit.variable, misfit.choice)
    return architecture, tuple(refused)


def check_fit(architecture: Architecture, needs: Sequence[Need], step: int = 1) -> None:
    """Refuses an architecture with choices that do not fit.

    Args:
        architecture: as a configuration asks for it.
        needs: of the network.
        step: what resolutions are multiples of (pixels).

    Raises:
        SpaceError: names the first such choice, and what fits.
    """
    rest, refused = fitting(architecture, needs)
    if not refused:
        return
    variable, choice, need = refused[0].variable, refused[0].choice, refused[0].need
    remedy = f"of its choices, {list(rest.space[variable].choices)} fit"
    side = next((atom for atom in need.dimension.atoms() if isinstance(atom, Resolution)), None)
    if variable == RESOLUTION and side is not None:
        remedy = f"resolutions of at least {least_resolution(needs, side, step)} do"
    raise SpaceError(f"space: {variable} {shown(choice)} does not fit: {need.reason}; {remedy}")


def _slides(dimension: Dimension) -> bool:
    return isinstance(dimension, Window) or any(_slides(child) for child in dimension.children())


def _misfit(architecture: Architecture, need: Need) -> Refused | None:
    """A choice to blame where a need is not met by all joint choices."""
    if not architecture.variables(need.dimension):
        return None
    joint = joint_sizes(architecture, [need.dimension])
    missing = (joint.sizes[:, 0] < need.least)[joint.rows]
    if not missing.any():
        return None
    blamed = [
        (int(np.count_nonzero(np.take(missing, index, axis))), name, choice)
        for axis, name in enumerate(joint.variables)
        for index, choice in _modified(architecture, name)
    ]
    most, name, choice = max(blamed, key=lambda entry: entry[0], default=(0, "", 0))
    if most == 0:  # only what adds to a long sum is to blame, in the order of the space
        summed = () if joint.derived is None else joint.derived.variables
        name, choice = next((name, choice) for name in summed for _, choice in _modified(architecture, name))
    return Refused(name, choice, need)


def _modified(architecture: Architecture, name: str) -> Iterator[tuple[int, Choice]]:
    """The choices of a variable but the default, with their places."""
    variable = architecture.space[name]
    return ((i, choice) for i, choice in enumerate(variable.choices) if i != variable.default)


def _without(architecture: Architecture, name: str, choice: Choice) -> Architecture:
    """The architecture without one choice of a variable."""
    variable = architecture.space[name]
    choices = tuple(other for other in variable.choices if other != choice)
    variables = tuple(other.keeping(choices) if other is variable else other for other in architecture.space)
    return replace(architecture, space=replace(architecture.space, variables=variables))


def least_resolution(needs: Sequence[Need], resolution: Resolution, step: int) -> int:
    """The smallest image side, in pixels, from which on the unmodified network has all that it needs."""
    least = resolution.meta
    while least > step and all(_met(need, resolution, least - step) for need in needs):
        least -= step
    return least


def _met(need: Need, resolution: Resolution, side: int) -> bool:
    return need.dimension.size(lambda atom: side if atom == resolution else atom.meta) >= need.least
