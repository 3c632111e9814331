"""Hidden channels of which some are maps of the input, and the others cheap functions of these (Han et al., 2020).

With s parts, a dense convolution that writes the hidden channels of a block writes the first of these parts alone, the
most important channels. Each other part follows from the first by a depthwise convolution (GhostNet, section 3.1)::

    Conv -> BatchNorm -> activation  =>  Conv -> BatchNorm -> activation -> p
                                         p -> Conv of each channel -> BatchNorm -> activation -> g        Concat(p, g)

Kernels begin at random: on a pretrained network ghosts of the channels with the most similar weights left as much of
what the block says (docs/design/closed-form.md).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autotailor.ir.alternatives.alternative import Branch, register_alternative
from autotailor.ir.alternatives.rebuilding import Interior, Rebuilt, replaced
from autotailor.ir.errors import SpaceError
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import rules

LEAST, MOST = 16, 8
"""Hidden channels from which on a block has ghosts, and into how many parts they are divided at most."""


@register_alternative
class Ghost(Rebuilt):
    """``ghost: [2]``: a half of the hidden channels follows from the other half; with 3, two thirds from a third."""

    kind = "ghost"
    usual = (2,)

    def choices(self, value: object) -> tuple[str, ...]:
        if isinstance(value, Sequence) and all(type(parts) is int and 2 <= parts <= MOST for parts in value):
            return tuple(f"{self.kind}:{parts}" for parts in sorted(set(value)))
        raise SpaceError(
            f"space.alternatives.{self.kind}: expected a list of numbers of parts, 2 to {MOST}, such as [2], "
            f"not {value!r}"
        )

    def fits(self, interior: Interior) -> bool:
        return any(atom.meta >= LEAST for _, atom in interior.maps())

    def rebuild(self, interior: Interior, choice: str) -> Branch:
        parts = int(choice.partition(":")[2])
        maps = [(node.name, atom) for node, atom in interior.maps() if atom.meta >= LEAST]
        sizes = {atom: atom.meta // parts * parts for _, atom in maps}
        part = interior.narrowed({atom: interior.order(atom)[:size] for atom, size in sizes.items()})
        for name, _ in maps:
            part = _ghosted(part, next(node for node in part.nodes if node.name == name), parts)
        return part


def _ghosted(part: Branch, node: Node, parts: int) -> Branch:
    """A part in which a convolution writes the first of so many parts of its channels."""
    chain = _chain(part, node)
    shape = part.shapes[node.outputs[0]]
    size = shape[1] // parts
    nodes, ends = list[Node](), list[str]()
    weights, shapes, draw = dict(part.weights), dict(part.shapes), np.random.default_rng(0)
    for number in range(parts):
        own = slice(number * size, (number + 1) * size)
        end = f":ghost.{number}"
        for each in chain:
            inputs = [f"{name}{end}" if name else "" for name in each.inputs]
            if each is node:
                inputs[0] = ends[0] if number else node.inputs[0]
            weights |= {f"{name}{end}": part.weights[name][own] for name in each.inputs if name in part.weights}
            outputs = tuple(f"{name}{end}" for name in each.outputs)
            shapes |= {
                new: (*shape[:1], size, *part.shapes[old][2:]) for old, new in zip(each.outputs, outputs, strict=True)
            }
            new = replace(each, name=f"{each.name}{end}", inputs=tuple(inputs), outputs=outputs)
            if each is node and number:
                kernels = draw.normal(0.0, 1 / 3, (size, 1, 3, 3)).astype(np.float32)
                weights[inputs[1]], new = kernels, replace(new, attributes=_CHEAP).with_attributes(group=size)
            nodes.append(new)
        ends.append(outputs[0])
    nodes.append(Node(f"{node.name}:ghost", "Concat", tuple(ends), chain[-1].outputs, freeze_attributes({"axis": 1})))
    return replaced(part, chain, nodes, weights, shapes)


_CHEAP = freeze_attributes({"kernel_shape": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)})


def _chain(part: Branch, node: Node) -> list[Node]:
    """A convolution, and the BatchNorm and activation functions behind it that alone read it."""
    chain = [node]
    while True:
        readers = [each for each in part.nodes if chain[-1].outputs[0] in each.inputs]
        rule = rules.find(readers[0].kind) if len(readers) == 1 else None
        activates = rule is not None and rule.elementwise and len(readers[0].inputs) == 1
        follows = len(readers) == 1 and (activates or readers[0].kind == "BatchNormalization")
        if not follows or readers[0].outputs[0] == part.output:
            return chain
        chain.append(readers[0])
