"""SuperNets in which every atom is a variable of its own: what templates would couple or never touch shows here."""

from __future__ import annotations

import onnx

import autotailor
from acceptance import checks
from autotailor.ir.architecture import Architecture, Fixed
from autotailor.ir.dimension import Atom
from autotailor.ir.graph import Graph
from autotailor.ir.propagation import propagate
from autotailor.ir.variable import Space, Variable


def every_atom(model: onnx.ModelProto, least: int = 1, smallest_image: int = 1) -> autotailor.SuperNet:
    """The network with a variable for each atom: sizes from ``least`` (images: ``smallest_image``) to the meta size."""
    graph = checks.compile_model(model).graph
    net = autotailor.SuperNet(graph, {})
    spatial = {a for d in net.propagation.dimensions[graph.input] for a in d.atoms()}
    variables: list[Variable] = []
    rules = {}
    for atom in atoms_of(graph):
        sizes = tuple(range(min(atom.meta, smallest_image if atom in spatial else least), atom.meta + 1))
        if len(sizes) > 1:
            variables.append(Variable(atom.name, "size", sizes, len(sizes) - 1))
            rules[atom] = Fixed(atom.name)
    net.__dict__["architecture"] = Architecture(Space(tuple(variables)), rules)
    return net


def atoms_of(graph: Graph) -> tuple[Atom, ...]:
    """Atoms of all activations and weights, each once."""
    dimensions = propagate(graph).dimensions
    return tuple(dict.fromkeys(atom for axes in dimensions.values() for axis in axes for atom in axis.atoms()))
