"""Recurrent layers (GRU, LSTM, RNN): what they read may change, their own width stays.

Gates lie in ONNX's order: update, reset, hidden of a GRU; input, output, forget, cell of an LSTM.
"""

from collections.abc import Sequence
from typing import Any

import torch

from autotailor.ir.dimensions.dimension import Constant
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
ACTIVATIONS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",)}
LENGTHS, STATES, PEEPHOLES = 4, slice(5, 7), 7
"""Positions of the inputs that say how long each series is, what the first states are, and how an LSTM's gates read its
cell."""


@register
class RecurrentRule(OperatorRule):
    """X ``[time, n, channels]``, W ``[directions, gates * hidden, channels]``, R and B.

    Y is ``[time, directions, n, hidden]``, and the last states are ``[directions, n, hidden]``.
    """

    kinds = tuple(GATES)

    def applies(self, node: Node, deduction: Deduction) -> str:
        if not all(map(deduction.is_weight, node.inputs[1:4])) or _strange(node):
            return "its form is not known"
        states = [name for name in node.inputs[STATES] if name and deduction.is_weight(name)]
        return "its first states are those of one batch" if any(deduction.shape(s)[1] > 1 for s in states) else ""

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        time, batch, channels = deduction.dimensions(node.inputs[0])
        directions, gates, _ = deduction.dimensions(node.inputs[1])
        deduction.declare(node.inputs[1], (directions, gates, channels))
        for axis in (
            directions,
            gates,
            *(axis for name in node.inputs[2:] if name for axis in deduction.dimensions(name)),
        ):
            deduction.freeze(axis)
        count, hidden = Constant(directions.meta), Constant(gates.meta // GATES[node.kind])
        state = (count, batch, hidden)
        return [(time, count, batch, hidden), state, state]

    def call(self, node: Node, arguments: Sequence[Any]) -> Any:
        if strange := _strange(node):
            raise GraphError(
                f"node {node.name}: {node.kind} with {strange} is not known; export the network without it"
            )
        x, w, r, b, _, h, c = (*arguments, *[None] * 7)[:7]
        directions, _, hidden = r.shape
        start = x.new_zeros(directions, x.shape[1], hidden)
        h, c = (start if state is None else state.expand_as(start) for state in (h, c))
        b = r.new_zeros(directions, 2 * r.shape[1]) if b is None else b
        results = []
        for place in range(directions):
            backwards = node.get("direction", "forward") == "reverse" or place == 1
            rows, last = _walk(node, x.flip(0) if backwards else x, w[place], r[place], b[place], (h[place], c[place]))
            results.append((rows.flip(0) if backwards else rows, *last))
        y, *states = zip(*results, strict=True)
        every = (torch.stack(y, 1), *(torch.stack(state) for state in states))
        return every[: len(node.outputs)] if len(node.outputs) > 1 else every[0]

    def macs(self, feature: OperatorFeature) -> int:
        time, directions, batch, hidden = feature.outputs[0]
        return time * directions * batch * GATES[feature.kind] * hidden * (feature.inputs[0][2] + hidden)


def _strange(node: Node) -> str:
    """What of a node is not computed here."""
    count = 2 if node.get("direction", "forward") == "bidirectional" else 1
    activations = tuple(node.get("activations", ())) or ACTIVATIONS[node.kind] * count
    return next(
        (
            said
            for said, present in (
                (f"activations {activations}", activations != ACTIVATIONS[node.kind] * count),
                ("layout 1", node.get("layout", 0)),
                ("clip", node.get("clip", 0)),
                ("input_forget", node.get("input_forget", 0)),
                ("lengths of series", any(node.inputs[LENGTHS : LENGTHS + 1])),
                ("peepholes", any(node.inputs[PEEPHOLES:])),
            )
            if present
        ),
        "",
    )


def _walk(
    node: Node, x: Tensor, w: Tensor, r: Tensor, b: Tensor, state: tuple[Tensor, Tensor]
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """One direction: the hidden states ``[time, n, hidden]``, and the last hidden state and cell."""
    (h, c), (wb, rb), rows = state, b.chunk(2), []
    for read in (x @ w.mT + wb).unbind(0):
        if node.kind == "GRU":
            h = _gru(read, h, r, rb, bool(node.get("linear_before_reset", 0)))
        elif node.kind == "LSTM":
            i, o, f, g = (read + h @ r.mT + rb).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        else:
            h = (read + h @ r.mT + rb).tanh()
        rows.append(h)
    return torch.stack(rows), (h, c)


def _gru(read: Tensor, h: Tensor, r: Tensor, rb: Tensor, reset_last: bool) -> Tensor:
    """The next hidden state ``[n, hidden]`` of a GRU."""
    (xz, xr, xh), (rz, rr, rh), (bz, br, bh) = read.chunk(3, 1), r.chunk(3), rb.chunk(3)
    update, reset = (xz + h @ rz.mT + bz).sigmoid(), (xr + h @ rr.mT + br).sigmoid()
    inner = reset * (h @ rh.mT + bh) if reset_last else (reset * h) @ rh.mT + bh
    return (1 - update) * (xh + inner).tanh() + update * h
