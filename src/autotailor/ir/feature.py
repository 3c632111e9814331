"""Features of fused operators: everything about one operator of one SubNet that its latency can depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Shape = tuple[int, ...]
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
Attributes = tuple[tuple[str, Attribute], ...]
OPERANDS = "operands"
"""Attribute of an operator with weights in front of activations: the order of both, ``wx`` for a constant matrix times
an activation. Where the attribute is missing, all activations come before all weights."""


def freeze_attributes(attributes: Mapping[str, Any]) -> Attributes:
    """Sorted, hashable attributes; lists become tuples."""
    return tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()))


@dataclass(frozen=True)
class Follower:
    """An in-place operator that runs fused with its producer, for instance an activation."""

    kind: str
    attributes: Attributes = ()


@dataclass(frozen=True)
class OperatorFeature:
    """One fused operator with its active architecture (paper, section 4.2.1).

    Attributes:
        kind: ONNX operator type of the producer (``Conv``, ``Gemm``, ``Add``, ``MaxPool`` ...).
        inputs: active shapes of the activations that the operator reads, batch first; the operand of an ``Add`` among
            the followers comes last.
        outputs: active shapes of the activations that it writes.
        weights: active shapes of its weights after folding: of a convolution ``[out, in / group, kh, kw]`` and the
            bias, where it has one.
        attributes: sorted ONNX attributes that matter at run time (strides, pads, dilations, group ...).
        followers: operators that the runtime fuses behind this one, in order. A normalisation that is folded into the
            weights is no follower.
    """

    kind: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    weights: tuple[Shape, ...] = ()
    attributes: Attributes = ()
    followers: tuple[Follower, ...] = field(default=())

    def attribute(self, name: str, default: Any = None) -> Any:
        """Value of one attribute, or the default."""
        return dict(self.attributes).get(name, default)

    @property
    def operands(self) -> tuple[Shape, ...]:
        """Shapes of activations and weights in the order in which a product reads them."""
        order = self.attribute(OPERANDS, "x" * len(self.inputs) + "w" * len(self.weights))
        sources = {"x": iter(self.inputs), "w": iter(self.weights)}
        return tuple(next(sources[kind]) for kind in order)

    def to_json(self) -> str:
        """JSON with the fields in a fixed order: the key of the LUT."""
        return json.dumps(
            {
                "kind": self.kind,
                "inputs": self.inputs,
                "outputs": self.outputs,
                "weights": self.weights,
                "attributes": dict(self.attributes),
                "followers": [[f.kind, dict(f.attributes)] for f in self.followers],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> OperatorFeature:
        """Reads ``to_json``."""
        data = json.loads(text)
        return cls(
            kind=data["kind"],
            inputs=tuple(tuple(s) for s in data["inputs"]),
            outputs=tuple(tuple(s) for s in data["outputs"]),
            weights=tuple(tuple(s) for s in data["weights"]),
            attributes=freeze_attributes(data["attributes"]),
            followers=tuple(Follower(kind, freeze_attributes(attrs)) for kind, attrs in data["followers"]),
        )

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of ``to_json``."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]
