"""Alternatives: operators that stand in for one operator of the network, with weights of their own.

An alternative begins near the operator that it stands in for, without any training: its weights follow in closed form
from the operator's, and from what the operator says on pictures (``Responses``). A new kind is one file in ``kinds/``
and one registration; blocks, variables, gates, latencies, search and export need not know it.
"""

import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import GraphError, SpaceError
from autotailor.ir.feature import Shape
from autotailor.ir.graph import MIXING, Graph, Node, Weights, reading_axis
from autotailor.ir.junctions import ORIGINAL
from autotailor.ir.space.architecture import round_width

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Branch:
    """Nodes that stand in for one node.

    Attributes:
        nodes: in topological order; the first reads what the node reads, the last writes ``output``.
        output: name of the tensor that stands in for the node's.
        weights: of the nodes, by name.
        shapes: meta shapes of what the nodes write.
    """

    nodes: tuple[Node, ...]
    output: str
    weights: Weights
    shapes: Mapping[str, Shape]


@dataclass(frozen=True, eq=False)
class Responses:
    """What an operator says on pictures, and what the last map of an alternative reads there.

    Attributes:
        mean: E[y] ``[out]``.
        square: E[y y'] ``[out, out]``.
        features: E[f] ``[features]``, E[f f'] ``[features, features]`` and E[f y'] ``[features, out]``; None where the
            alternative asks for no features.
        ridge: share of the features' mean variance that is added to their variances.
    """

    mean: Array
    square: Array
    features: tuple[Array, Array, Array] | None = None
    ridge: float = 0.0


class Asked(ABC):
    """Base of all that ``space.alternatives`` can ask for.

    Attributes:
        kind: how configurations and choices call it.
        nested: whether its choices are sizes of one set of weights, so that training one of them alone spoils others.
        usual: what ``space.alternatives.KIND`` usually asks for; ``inspect`` proposes it.
    """

    kind: ClassVar[str]
    nested: ClassVar[bool] = False
    usual: ClassVar[bool | tuple[float, ...]] = True

    @abstractmethod
    def choices(self, value: object) -> tuple[str, ...]:
        """The choices that ``space.alternatives.KIND`` asks for: ``KIND`` or ``KIND:PARAMETER``, the dearest first.

        Raises:
            SpaceError: the value has another form.
        """


class Alternative(Asked):
    """Base of the kinds of alternatives that stand in for one map.

    Attributes:
        fits_features: whether ``solve`` needs the features that the last node of its branches reads.
    """

    fits_features: ClassVar[bool] = False

    @abstractmethod
    def fits(self, graph: Graph, node: Node) -> bool:
        """Whether a branch of this kind can stand in for a node."""

    @abstractmethod
    def build(self, graph: Graph, node: Node, choices: Sequence[str]) -> Branch | None:
        """The branch that stands in for a node that it fits, under choices of this kind.

        Its weights follow from the node's alone. None where it would take no fewer multiply-accumulates.
        """

    def sizes(self, graph: Graph, node: Node, choices: Sequence[str]) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Nodes of a branch, by name, whose output channels depend on the choice, each with choices and channels."""
        return {}

    @abstractmethod
    def solve(self, graph: Graph, node: Node, branch: Sequence[Node], responses: Responses) -> Weights:
        """New weights of a branch, nearest to what its node says on pictures.

        Args:
            graph: with the junctions.
            node: that the branch stands in for.
            branch: the nodes of the branch, in order.
            responses: of the node, and features of the last node of the branch.
        """


def name_of(node: Node, kind: str, part: str) -> str:
    """A name for a part of a branch."""
    return f"{node.name}:{kind}.{part}"


def read_shares(kind: str, value: object) -> tuple[str, ...]:
    """Choices ``KIND:SHARE`` from a list of shares between 0 and 1, the largest first."""
    if isinstance(value, Sequence) and all(isinstance(x, int | float) and 0 < x < 1 for x in value):
        return tuple(f"{kind}:{share:g}" for share in sorted(set(value), reverse=True))
    raise SpaceError(
        f"space.alternatives.{kind}: expected a list of shares between 0 and 1 such as [0.75, 0.5], not {value!r}"
    )


def read_switch(kind: str, value: object) -> tuple[str, ...]:
    """The choice ``KIND`` where true is asked for."""
    if isinstance(value, bool):
        return (kind,) if value else ()
    raise SpaceError(f"space.alternatives.{kind}: expected true or false, not {value!r}")


def dense(graph: Graph, node: Node) -> Array | None:
    """The weight of a map that mixes all channels, output channels first ``[out, in, ...]``; None for other nodes."""
    if node.kind not in MIXING or node.inputs[0] in graph.weights:
        return None
    weight = graph.weights.get(node.inputs[1])
    if weight is None or weight.dtype != np.float32 or node.get("group", 1) != 1:
        return None
    if node.kind == "Gemm" and (node.get("transA", 0) or (node.get("alpha", 1.0), node.get("beta", 1.0)) != (1.0, 1.0)):
        return None
    if node.kind != "Conv" and weight.ndim != 2:
        return None
    return weight if reading_axis(node) == 1 else weight.T


def least_squares(responses: Responses) -> tuple[Array, Array]:
    """The map ``[out, features]`` and the bias ``[out]`` whose answers to the features are nearest to the responses."""
    assert responses.features is not None
    mean, square, product = responses.features
    covariance = square - np.outer(mean, mean)
    ridge = responses.ridge * np.trace(covariance) / len(mean) + np.finfo(np.float32).tiny
    solved = np.linalg.solve(covariance + ridge * np.eye(len(mean)), product - np.outer(mean, responses.mean)).T
    return solved.astype(np.float32), (responses.mean - solved @ mean).astype(np.float32)


def bias_of(graph: Graph, node: Node, channels: int) -> Array | None:
    """The bias ``[out]`` of a map, zero where it has none; None for a bias of another form."""
    name = node.inputs[2] if len(node.inputs) > 2 else ""
    bias = graph.weights[name] if name else np.zeros(channels, np.float32)
    return bias if bias.shape == (channels,) else None


def rank_of(share: float, inputs: int, outputs: int) -> int:
    """The rank at which a pair of factors takes a share of a matrix's multiply-accumulates, rounded to 4 or 8."""
    even = inputs * outputs / (inputs + outputs)
    return min(round_width(share * even, 4 if even < 64 else 8), math.ceil(even))


_alternatives: dict[str, Asked] = {}
SomeAsked = TypeVar("SomeAsked", bound=Asked)


def register_alternative(alternative: type[SomeAsked]) -> type[SomeAsked]:
    """Class decorator: makes a kind of alternative known.

    Raises:
        GraphError: the class is no alternative, lacks a method or its kind, or another one has this kind.
    """
    name = f"alternative {getattr(alternative, '__name__', alternative)!s}"
    if not (isinstance(alternative, type) and issubclass(alternative, Asked)):
        raise GraphError(f"{name}: expected a class that derives from Alternative")
    if missing := sorted(getattr(alternative, "__abstractmethods__", ())):
        raise GraphError(f"{name}: it lacks {' and '.join(missing)}; define what is missing")
    kind = getattr(alternative, "kind", None)
    if not isinstance(kind, str) or not kind.isidentifier() or kind == ORIGINAL:
        raise GraphError(f"{name}: kind is {kind!r}, expected a name such as low_rank")
    if kind in _alternatives:
        raise GraphError(f"two alternatives of kind {kind}; rename {alternative.__name__}")
    _alternatives[kind] = alternative()
    return alternative


def alternatives() -> Mapping[str, Asked]:
    """All kinds of alternatives by name."""
    importlib.import_module("autotailor.ir.alternatives.kinds")  # registers them; they import this module
    return _alternatives


def of_maps() -> Mapping[str, Alternative]:
    """The kinds of alternatives that stand in for one map, by name."""
    return {kind: each for kind, each in alternatives().items() if isinstance(each, Alternative)}
