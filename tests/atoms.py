"""SuperNets in which every atom is a variable of its own, also atoms that templates would couple or never touch."""

from dataclasses import replace

import onnx

import autotailor
from acceptance import checks
from autotailor.ir.dimensions.dimension import Atom, Kernel
from autotailor.ir.space.architecture import Architecture, Fixed
from autotailor.ir.space.variable import Space, Variable


def every_atom(model: onnx.ModelProto, smallest_image: int, halves: bool = False) -> autotailor.SuperNet:
    """The network with a variable for each atom, whose choices are the sizes from 1 to the meta size.

    Args:
        model: a classifier.
        smallest_image: least resolution (pixels).
        halves: offers only two sizes for each atom, the meta size and half of it.
    """
    net = autotailor.SuperNet.of(checks.compile_model(model).graph, {})
    spatial = {a for d in net.propagation.dimensions[net.graph.input] for a in d.atoms()}
    atoms = dict.fromkeys(a for axes in net.propagation.dimensions.values() for axis in axes for a in axis.atoms())
    variables: list[Variable] = []
    for atom in atoms:
        sizes = _sizes(atom, smallest_image if atom in spatial else 1)
        if atom in spatial:
            sizes = tuple(size for size in sizes if size % net.propagation.resolution_step == 0)
        sizes = tuple(dict.fromkeys((sizes[len(sizes) // 2], sizes[-1]))) if halves else sizes
        if len(sizes) > 1:
            variables.append(Variable(atom.name, "size", sizes, len(sizes) - 1))
    space = Space(tuple(variables))
    return varied(net, Architecture(space, {a: Fixed(a.name) for a in atoms if a.name in space.positions}))


def varied(net: autotailor.SuperNet, architecture: Architecture) -> autotailor.SuperNet:
    """The network with other variables; none of them removes a block."""
    return replace(net, elastic=replace(net.elastic, architecture=architecture, gates={}))


def _sizes(atom: Atom, least: int) -> tuple[int, ...]:
    if isinstance(atom, Kernel):
        return tuple(range(Kernel.LEAST, atom.meta + 1, 2))
    return tuple(range(min(least, atom.meta), atom.meta + 1))
