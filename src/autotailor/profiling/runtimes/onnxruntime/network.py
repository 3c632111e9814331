"""Writes a whole SubNet as an ONNX model without weights, whose operators ONNX Runtime times in place.

ONNX Runtime's profiler tells how long each kernel of a run took. Nodes of step 7, and the tensors that they write, have
names that begin with ``s7.``. The optimizer derives the names of its nodes from these names, so that a kernel's step is
known.
"""

from __future__ import annotations

from collections.abc import Sequence

from autotailor.ir.fusion.sequence import PlacedOperator, image_of
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.onnxruntime.replicas import Model, weight_mb


def network_program(key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
    """The program of a SubNet, see ``InPlaceRuntime.written``."""
    model = Model()
    model.reads("in0", (1, *shape))
    tensors = {image_of(key, operators): "in0"}
    for i, operator in enumerate(operators):
        made = model.computes(operator.feature, [tensors[name] for name in operator.inputs], f"s{i}")
        ends = made.nodes[-1].outputs if len(operator.outputs) > 1 else (made.output,)
        tensors |= dict(zip(operator.outputs, ends, strict=True))
    logits = tensors[operators[-1].outputs[0]]
    model.returns(logits, operators[-1].feature.outputs[0])
    return Program(
        key=key,
        param=model.text(),
        inputs=(shape,),
        long=logits,
        steps=tuple((operator.feature.id, f"s{i}") for i, operator in enumerate(operators)),
        memory_mb=sum(weight_mb(operator.feature) for operator in operators),
    )
