"""Writes a whole SubNet as a ``.param`` without weights, whose operators can be timed in place.

pnnx would take seconds for each SubNet. The layers written here are those that pnnx would write (see ``claims``), in
the order in which ncnn runs them when the output is extracted. A tensor with several readers passes a Split, which
belongs to the operator that wrote the tensor. Extracting the blobs of ``steps`` in turn runs one operator at a time.
"""

from collections import Counter
from collections.abc import Sequence

from autotailor.ir.fusion.sequence import PlacedOperator, image_of
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.ncnn.fragments import fragment
from autotailor.profiling.runtimes.ncnn.layers import Layer
from autotailor.profiling.runtimes.ncnn.param import operator_lines, param_text
from autotailor.profiling.runtimes.ncnn.replicas import weight_mb


def network_program(key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
    """The program of a SubNet, see ``InPlaceRuntime.written``."""
    ordered = _as_run(operators)
    writer = _Writer(Counter(name for operator in operators for name in operator.inputs))
    writer.lines.append("Input in0 0 1 in0")
    writer.define(image_of(key, operators), "in0")
    steps = [(operator.feature.id, writer.add(operator)) for operator in ordered]
    return Program(
        key=key,
        param=param_text(writer.lines),
        inputs=(shape,),
        long=steps[-1][1],
        steps=tuple(steps),
        memory_mb=sum(weight_mb(operator.feature) for operator in operators),
    )


def _as_run(operators: Sequence[PlacedOperator]) -> list[PlacedOperator]:
    """The operators in the order in which ncnn runs them: the inputs of each operator first, from left to right."""
    writers = {name: operator for operator in operators for name in operator.outputs}
    ordered: dict[int, PlacedOperator] = {}
    stack = [(operators[-1], False)]
    while stack:
        operator, ready = stack.pop()
        if id(operator) in ordered:
            continue
        if ready:
            ordered[id(operator)] = operator
        else:
            stack.append((operator, True))
            stack += [(writers[name], False) for name in reversed(operator.inputs) if name in writers]
    return list(ordered.values())


class _Writer:
    """Collects the lines of a ``.param``, and for each tensor the blobs that its readers will read."""

    def __init__(self, readers: Counter[str]) -> None:
        self.lines: list[str] = []
        self.readers = readers
        self.blobs: dict[str, list[str]] = {}

    def define(self, tensor: str, blob: str) -> str:
        """Notes the blob of a tensor, and adds a Split if several operators read it.

        Returns the blob whose extraction runs the tensor's operator and the Split.
        """
        count = self.readers[tensor]
        if count < 2:
            self.blobs[tensor] = [blob]
            return blob
        self.blobs[tensor] = [f"{blob}_{i}" for i in range(count)]
        self.lines.append(Layer("Split").line(f"split_{blob}", [blob], self.blobs[tensor]))
        return self.blobs[tensor][0]

    def add(self, operator: PlacedOperator) -> str:
        """Writes an operator; returns the blob whose extraction runs it."""
        number = len(self.lines)
        reads = [self.blobs[name].pop(0) for name in operator.inputs]
        writes = [f"b{number}_{i}" for i in range(len(operator.outputs))]
        self.lines += operator_lines(fragment(operator.feature), f"op{number}", reads, writes)
        ends = [self.define(name, blob) for name, blob in zip(operator.outputs, writes, strict=True)]
        return ends[-1]
