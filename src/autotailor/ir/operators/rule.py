"""Operator rules: what the IR knows of each kind of operator.

A rule deduces the dimensions of an operator's outputs from the dimensions of its inputs (the paper's ``update``), says
how the axes of its weights relate to both, computes the operator in PyTorch (``call``), and counts its
multiply-accumulates (``macs``). One file under
``operators/`` holds one family, and a rule becomes known by being registered. A kind without a rule is *static*: see
``ir/execution/modules/graph.py``.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import torch

from autotailor.ir.dimensions.dimension import Batch, Dimension
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Attributes, OperatorFeature, Shape
from autotailor.ir.graph import Node

Dimensions = tuple[Dimension, ...]


class Deduction(Protocol):
    """The questions that a rule may ask, and the facts that it may state, while dimensions are deduced."""

    def dimensions(self, name: str) -> Dimensions:
        """Dimensions of an activation or weight, as far as they are known."""
        ...

    def is_weight(self, name: str) -> bool:
        """Whether the tensor is a constant of the graph."""
        ...

    def shape(self, name: str) -> Shape:
        """Meta shape of an activation or a weight."""
        ...

    def fresh(self, node: Node, meta: int, role: str = "out") -> Dimension:
        """A new atom (a constant where meta is 1)."""
        ...

    def unify(self, left: Dimension, right: Dimension) -> None:
        """Couples two dimensions."""
        ...

    def freeze(self, dimension: Dimension) -> None:
        """Makes a dimension static."""
        ...

    def declare(self, weight: str, axes: Dimensions) -> None:
        """Says what the axes of a weight are."""
        ...

    def factor(self, axes: Dimensions, metas: Shape) -> Dimensions:
        """Axes regrouped to other sizes, in row-major order (Reshape)."""
        ...

    def cut(self, dimension: Dimension, metas: Shape) -> Dimensions:
        """Consecutive segments of an axis (Split)."""
        ...

    def require(self, dimension: Dimension, least: int, reason: str) -> None:
        """States a least size of a dimension, which the unmodified network has, and the reason why less is wrong."""
        ...

    def resample(self, node: Node, name: str) -> None:
        """Allows spatial axes of a weight that the node reads to be interpolated (position embeddings)."""
        ...


def broadcast(operands: Sequence[Dimensions], deduction: Deduction) -> Dimensions:
    """Couples operands as NumPy broadcasts them; returns the dimensions of the result. Axes of one couple nothing."""
    rank = max(len(operand) for operand in operands)
    joined: list[Dimension] = []
    for axis in range(-rank, 0):
        present = [operand[axis] for operand in operands if len(operand) >= -axis]
        large = [d for d in present if d.meta != 1]
        for other in large[1:]:
            deduction.unify(large[0], other)
        batch = [d for d in present if isinstance(d, Batch)]
        joined.append((large or batch or present)[0])
    return tuple(joined)


class OperatorRule:
    """Base of operator rules.

    Attributes:
        kinds: ONNX operator types the rule covers.
        constant_inputs: positions of inputs that shape the operator, with the attribute each becomes.
        attribute_at_17: those of them that ONNX opset 17 writes as attributes.
        statistics: positions of inputs that are no trainable parameters.
        elementwise: the operator reads one activation and writes one of the same shape, element by element.
        view: the operator moves no data.
        follows_shapes: ``call`` needs the node with the attributes that ``specialise`` gives.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    constant_inputs: ClassVar[dict[int, str]] = {}
    attribute_at_17: ClassVar[frozenset[str]] = frozenset()
    statistics: ClassVar[tuple[int, ...]] = ()
    elementwise: ClassVar[bool] = False
    view: ClassVar[bool] = False
    follows_shapes: ClassVar[bool] = False

    def applies(self, node: Node, deduction: Deduction) -> str:
        """Empty where the rule holds for this node; otherwise the reason why it stays static."""
        return ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        """Dimensions of each output; the rule couples and freezes dimensions, and declares weights, on the way."""
        raise NotImplementedError

    def general(self, node: Node, inputs: Sequence[Dimensions], outputs: Sequence[Dimensions]) -> Node:
        """The node with attributes that say the same whatever the sizes of batch and axes (``parser.generalise``)."""
        return node

    def call(self, node: Node, arguments: Sequence[Any]) -> Any:
        """The operator in PyTorch; arguments are the node's inputs, weights included, None where absent.

        A rule computes every node of its kinds, also a node that stays static because the rule does not apply.
        """
        raise NotImplementedError

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        """The node with attributes that follow the active shapes of its inputs (weights included) and outputs."""
        return node

    def run_time_attributes(self, node: Node) -> Attributes:
        """Attributes that matter to a device, with ONNX's defaults filled in."""
        return node.attributes

    def macs(self, feature: OperatorFeature) -> int:
        """Multiply-accumulate operations of one call."""
        return 0

    def opset(self, node: Node) -> int:
        """The first ONNX opset, 17 or later, in which the node can be written."""
        return 17


class Registry:
    """Operator kinds to their rules."""

    def __init__(self) -> None:
        self._rules: dict[str, OperatorRule] = {}

    def register(self, rule: type[OperatorRule]) -> type[OperatorRule]:
        """Class decorator: makes a rule known for all its kinds.

        Raises:
            GraphError: the class is no rule, lacks a method or its kinds, or another rule has one of its kinds.
        """
        instance = _made(rule)
        for kind in rule.kinds:
            if kind in self._rules:
                other = type(self._rules[kind]).__name__
                raise GraphError(f"two operator rules for {kind}: {other} and {rule.__name__}; keep one of them")
        self._rules.update(dict.fromkeys(rule.kinds, instance))
        return rule

    def find(self, kind: str) -> OperatorRule | None:
        """The rule of a kind, or None."""
        return self._rules.get(kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that have a rule."""
        return tuple(sorted(self._rules))


def _made(rule: type[OperatorRule]) -> OperatorRule:
    """An instance of a rule that can be used."""
    name = f"operator rule {getattr(rule, '__name__', rule)!s}"
    if not (isinstance(rule, type) and issubclass(rule, OperatorRule)):
        raise GraphError(f"{name}: expected a class that derives from OperatorRule or ElementwiseRule")
    missing = [] if rule.call is not OperatorRule.call else ["call"]
    if rule.deduce is OperatorRule.deduce and rule.applies is OperatorRule.applies:  # a rule may keep all nodes static
        missing.append("deduce")
    if missing:
        raise GraphError(f"{name}: it lacks {' and '.join(missing)}; define what is missing")
    if not (isinstance(rule.kinds, tuple) and rule.kinds and all(isinstance(kind, str) for kind in rule.kinds)):
        raise GraphError(f'{name}: kinds is {rule.kinds!r}, expected a tuple of ONNX operator types such as ("Atan",)')
    return rule()


rules = Registry()
register: Callable[[type[OperatorRule]], type[OperatorRule]] = rules.register
Tensor = torch.Tensor
