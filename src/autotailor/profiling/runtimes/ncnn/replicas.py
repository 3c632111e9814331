"""Replica networks for ncnn: R copies of an operator, each with its own weights, read one packed input.

For R = 2 and a convolution::

    in0 -> ReLU (packs) -> Split -> conv k1 -> Noop c1 <- in_sink
                                 -> conv k2 -> Noop c2 <- c1

Extracting ``c1`` runs one copy and extracting ``c2`` runs two copies, so that shared costs cancel in the difference. A
Noop reads the sink before it and a copy's output, and passes on the sink. So outputs are freed one by one, and the Noop
reads them in the packed layout, as a next layer would. Copies of an operator that runs in place form a chain instead:
each works on the memory of the one before, as the operator does behind its producer.

A whole SubNet is written without weights, too, and its operators can be timed in place. pnnx would take seconds for
each SubNet. The layers written here are those that pnnx would write (see ``claims``), in the order in which ncnn runs
them when the output is extracted. A tensor with several readers passes a Split, which belongs to the operator that
wrote the tensor. A Noop reads several outputs, so that extracting what it passes on runs all of the network. Extracting
the blobs of ``steps`` in turn runs one operator at a time.

What global pooling writes is a vector in ncnn, and so is what follows from it alone. There pnnx writes a 1x1
convolution (squeeze and excitation) as an inner product. A Convolution would make an inner product anew in each run,
which takes three times as long.
"""

import math
from collections import Counter
from collections.abc import Sequence

from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.ir.fusion.sequence import PlacedOperator, ends_of, image_of
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.copies import copies
from autotailor.profiling.runtimes.ncnn.fragments import fragment
from autotailor.profiling.runtimes.ncnn.layers import Layer, ncnn_shape
from autotailor.profiling.runtimes.ncnn.param import operator_lines, param_text

PACKER = Layer("ReLU")
POOLINGS, VIEWS = ("GlobalAveragePool", "GlobalMaxPool"), ("Reshape", "Resize")


def weight_mb(feature: OperatorFeature) -> float:
    """Memory of one copy's weights in MiB; transformed 3x3 kernels (Winograd) take up to four times as much again."""
    size = sum(math.prod(shape) for shape in feature.weights) * 4 / 2**20
    return size * (5 if feature.kind == "Conv" and feature.weights[0][2:] == (3, 3) else 2)


def replica_program(feature: OperatorFeature) -> Program:
    """The replica network of a fused operator."""
    made = fragment(feature)
    short, long = copies(feature, weight_mb(feature))
    shapes = tuple(ncnn_shape(shape) for shape in feature.inputs)
    if len(made) == 1 and made[0].layer.in_place and len(shapes) == 1:
        param, prefix = _chain(made[0].layer, long), "k"
    else:
        param, prefix = _fan(feature, len(shapes), long), "c"
        shapes = (*shapes, (4,))
    return Program(
        key=feature.id,
        param=param,
        inputs=shapes,
        short=f"{prefix}{short}",
        long=f"{prefix}{long}",
        copies=(short, long),
        sink=prefix == "c",
        memory_mb=long * weight_mb(feature),
    )


def alone_program(feature: OperatorFeature) -> Program:
    """A single copy of a fused operator, to weigh the memory that the operator takes."""
    shapes = tuple(ncnn_shape(shape) for shape in feature.inputs)
    param = _fan(feature, len(shapes), 1)
    return Program(feature.id, param, (*shapes, (4,)), "c1", memory_mb=weight_mb(feature))


def sink_program(count: int = 16) -> Program:
    """A chain of Noops, which shows the cost of one replica's sink.

    The Noops pass on a blob that no other layer reads: ncnn would copy a shared blob for a layer that runs in place.
    """
    return Program("sink", _chain(Layer("Noop"), count), ((4,),), f"k{count}", "k1", (1, count))


def harness_program() -> Program:
    """A network that does nothing, which shows the cost of one call."""
    return Program(
        "harness", param_text(["Input in0 0 1 in0", Layer("Noop").line("k", ["in0"], ["out0"])]), ((4,),), "out0"
    )


def _sources(count: int, replicas: int) -> list[str]:
    """Lines of the inputs, each packed and split into one blob for each replica, and of the first sink."""
    lines = [f"Input in{j} 0 1 in{j}" for j in range(count + 1)]
    for j in range(count):
        lines.append(PACKER.line(f"pack{j}", [f"in{j}"], [f"packed{j}"]))
        lines.append(Layer("Split").line(f"split{j}", [f"packed{j}"], [f"in{j}_{i}" for i in range(1, replicas + 1)]))
    return lines


def _sink(count: int, i: int, outputs: Sequence[str]) -> str:
    """The line of sink i, which passes on the sink before it and frees the copy's outputs."""
    before = f"in{count}" if i == 1 else f"c{i - 1}"
    return Layer("Noop").line(f"sink{i}", [before, *outputs], [f"c{i}"])


def _fan(feature: OperatorFeature, count: int, replicas: int) -> str:
    """Text of a network with copies side by side."""
    lines, steps = _sources(count, replicas), fragment(feature)
    for i in range(1, replicas + 1):
        reads = [f"in{j}_{i}" for j in range(count)]
        writes = [f"o{j}_{i}" for j in range(len(feature.outputs))]
        lines += operator_lines(steps, f"copy{i}", reads, writes)
        lines.append(_sink(count, i, writes))
    return param_text(lines)


def _chain(made: Layer, replicas: int) -> str:
    """Text of a network with a chain of copies that run in place."""
    lines = ["Input in0 0 1 in0", PACKER.line("pack0", ["in0"], ["k0"])]
    lines += [made.line(f"copy{i}", [f"k{i - 1}"], [f"k{i}"]) for i in range(1, replicas + 1)]
    return param_text(lines)


def network_program(key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
    """The program of a SubNet, see ``InPlaceRuntime.written``."""
    ordered = _as_run(operators)
    writer = _Writer(Counter(name for operator in operators for name in operator.inputs))
    writer.lines.append("Input in0 0 1 in0")
    writer.define(image_of(key, operators), "in0")
    steps = [(operator.feature.id, writer.add(operator)) for operator in ordered]
    long = steps[-1][1]
    if len(ends := ends_of(operators)) > 1:
        last = [writer.blobs[end.outputs[-1]][0] for end in ends]
        joint = [f"{blob}.all" for blob in last]
        writer.lines.append(Layer("Noop").line("joint", last, joint))
        long = joint[0]
    return Program(
        key=key,
        param=param_text(writer.lines),
        inputs=(shape,),
        long=long,
        steps=tuple(steps),
        memory_mb=sum(weight_mb(operator.feature) for operator in operators),
    )


def _as_run(operators: Sequence[PlacedOperator]) -> list[PlacedOperator]:
    """The operators in the order in which ncnn runs them: the inputs of each operator first, from left to right.

    ncnn runs what the extracted blob needs; of a network with several outputs, all are extracted.
    """
    writers = {name: operator for operator in operators for name in operator.outputs}
    ordered: dict[int, PlacedOperator] = {}
    stack = [(operator, False) for operator in reversed(ends_of(operators))]
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
        self.vectors = set[str]()

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
        feature = operator.feature
        if self.is_vector(operator):
            self.vectors.update(operator.outputs)
            feature = _of_vectors(feature) if feature.kind == "Conv" else feature
        self.lines += operator_lines(fragment(feature), f"op{number}", reads, writes)
        ends = [self.define(name, blob) for name, blob in zip(operator.outputs, writes, strict=True)]
        return ends[-1]

    def is_vector(self, operator: PlacedOperator) -> bool:
        """Whether an operator writes a vector where ONNX has a map of one pixel."""
        feature = operator.feature
        if feature.outputs[0][2:] != (1, 1):
            return False
        if feature.kind in POOLINGS:
            return not feature.followers
        if not self.vectors.issuperset(operator.inputs):
            return False
        if feature.kind == "Conv":
            return feature.weights[0][2:] == (1, 1) and feature.attribute("group", 1) == 1
        return set(feature.inputs) == {feature.outputs[0]} and feature.kind not in VIEWS


def _of_vectors(feature: OperatorFeature) -> OperatorFeature:
    """A 1x1 convolution of one pixel as the product of a vector with a matrix."""
    kernel, *bias = feature.weights
    shapes = (feature.inputs[0][:2],), (feature.outputs[0][:2],), (kernel[:2], *bias)
    return OperatorFeature("Gemm", *shapes, freeze_attributes({"transB": 1}), feature.followers)
