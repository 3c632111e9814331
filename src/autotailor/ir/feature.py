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
class Engine:
    """What runs an operator.

    Attributes:
        runtime: its name.
        precision: of its storage and arithmetic.
        options: switches of the runtime by its own names, sorted.
    """

    runtime: str
    precision: str = "fp32"
    options: Attributes = ()

    def setting(self, default: Engine) -> Attributes:
        """In what it differs from a device's own engine, as features say it; nothing where it is that one."""
        own, other = self._said(), default._said()
        return freeze_attributes({name: value for name, value in own.items() if other.get(name) != value})

    def _said(self) -> dict[str, Attribute]:
        named = {f"option {name}": value for name, value in self.options}
        return {"runtime": self.runtime, "precision": self.precision, **named}


@dataclass(frozen=True)
class Settings:
    """What a variable sets of the engine of an operator.

    Attributes:
        variable: name of the variable; it changes no size.
        choices: for each of its choices what a feature says (``Engine.setting``).
    """

    variable: str
    choices: tuple[Attributes, ...]


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
        setting: in what its engine differs from the device's own (``Engine.setting``). JSON and id of an operator that
            runs as all others do say nothing of it.
    """

    kind: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    weights: tuple[Shape, ...] = ()
    attributes: Attributes = ()
    followers: tuple[Follower, ...] = field(default=())
    setting: Attributes = ()

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
                **({"setting": dict(self.setting)} if self.setting else {}),
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
            setting=freeze_attributes(data.get("setting", {})),
        )

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of ``to_json``."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]
