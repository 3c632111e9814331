"""Hidden channels of which some are maps of the input, and the others cheap functions of these (Han et al., 2020).

With s parts, a dense convolution that writes the hidden channels of a block writes the first of these parts alone, the
most important channels. Each other part follows from the first by a depthwise convolution (GhostNet, section 3.1)::

    Conv -> BatchNorm -> activation  =>  Conv -> BatchNorm -> activation -> p
                                         p -> Conv of each channel -> BatchNorm -> activation -> g        Concat(p, g)

A channel of g reads the channel of p whose weights are most like its own, at first through the middle tap alone.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autotailor.ir.alternatives.alternative import Array, Branch, register_alternative
from autotailor.ir.alternatives.rebuilding import Interior, Rebuilt, replaced
from autotailor.ir.dimensions.dimension import Atom
from autotailor.ir.errors import SpaceError
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import rules


@register_alternative
class Ghost(Rebuilt):
    """``ghost: [2]``: a half of the hidden channels follows from the other half; with 3, two thirds from a third."""

    kind = "ghost"

    def choices(self, asked: object) -> tuple[str, ...]:
        fits = isinstance(asked, Sequence) and all(isinstance(x, int) and 2 <= x <= 8 for x in asked)
        if fits and not isinstance(asked, str) and not any(isinstance(x, bool) for x in asked):  # type: ignore[union-attr]
            return tuple(f"{self.kind}:{parts}" for parts in sorted(set(asked)))  # type: ignore[arg-type]
        raise SpaceError(
            f"space.alternatives.{self.kind}: expected a list of numbers of parts, 2 to 8, such as [2], not {asked!r}"
        )

    def fits(self, interior: Interior) -> bool:
        return any(atom.meta >= 16 for _, atom in interior.maps())

    def rebuild(self, interior: Interior, choice: str) -> Branch:
        parts = int(choice.partition(":")[2])
        maps = [(node, atom) for node, atom in interior.maps() if atom.meta >= 2 * parts]
        kept: dict[Atom, Array] = {}
        signs: dict[str, Array] = {}
        for node, atom in maps:
            order, rows = kept.get(atom, interior.order(atom)), interior.graph.weights[node.inputs[1]]
            kept[atom], signs[node.name] = _paired(order, rows.reshape(atom.meta, -1).astype(np.float64), parts)
        part = interior.narrowed(kept)
        for name, own in signs.items():
            part = _ghosted(part, next(node for node in part.nodes if node.name == name), own, parts)
        return part


def _paired(order: Array, rows: Array, parts: int) -> tuple[Array, Array]:
    """An order in which channel i of every part is like channel i of the first part, and the signs of that."""
    from scipy.optimize import linear_sum_assignment

    size = len(order) // parts
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    kept, signs = [order[:size]], []
    for number in range(1, parts):
        own = order[number * size : (number + 1) * size]
        alike = rows[order[:size]] @ rows[own].T
        found = linear_sum_assignment(np.abs(alike), maximize=True)[1]
        kept.append(own[found])
        signs.append(np.where(alike[np.arange(size), found] < 0, -1.0, 1.0))
    return np.concatenate(kept), np.concatenate(signs)


def _ghosted(part: Branch, node: Node, signs: Array, parts: int) -> Branch:
    """A part in which a convolution writes the first of so many parts of its channels."""
    chain = _chain(part, node)
    shape = part.shapes[node.outputs[0]]
    size = shape[1] // parts
    nodes, ends = list[Node](), list[str]()
    weights, shapes = dict(part.weights), dict(part.shapes)
    for number in range(parts):
        own = slice(number * size, (number + 1) * size)
        end = f":ghost.{number}"
        for each in chain:
            inputs = [name if name in part.weights or not name else f"{name}{end}" for name in each.inputs]
            if each is node:
                inputs[0] = ends[0] if number else node.inputs[0]
            for place, name in enumerate(each.inputs):
                if name in part.weights:
                    inputs[place] = f"{name}{end}"
                    weights[inputs[place]] = part.weights[name][own]
            outputs = tuple(f"{name}{end}" for name in each.outputs)
            shapes |= {
                new: (*shape[:1], size, *part.shapes[old][2:]) for old, new in zip(each.outputs, outputs, strict=True)
            }
            new = replace(each, name=f"{each.name}{end}", inputs=tuple(inputs), outputs=outputs)
            if each is node and number:
                kernels = np.zeros((size, 1, 3, 3), np.float32)
                kernels[:, 0, 1, 1] = signs[own.start - size : own.stop - size]
                weights[inputs[1]], new = kernels, replace(new, attributes=_CHEAP).with_attributes(group=size)
            nodes.append(new)
        ends.append(outputs[0])
    nodes.append(Node(f"{node.name}:ghost", "Concat", tuple(ends), chain[-1].outputs, freeze_attributes({"axis": 1})))
    return replaced(part, chain, nodes, weights, shapes)


_CHEAP = freeze_attributes({"kernel_shape": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)})


def _chain(part: Branch, node: Node) -> list[Node]:
    """A convolution, and the BatchNorm and activation functions behind it that alone read it."""
    found = [node]
    while True:
        readers = [each for each in part.nodes if found[-1].outputs[0] in each.inputs]
        rule = rules.find(readers[0].kind) if len(readers) == 1 else None
        follows = rule is not None and (
            readers[0].kind == "BatchNormalization"
            or (rule.elementwise and all(name in part.weights for name in readers[0].inputs[1:] if name))
        )
        if not follows or readers[0].outputs[0] == part.output:
            return found
        found.append(readers[0])
