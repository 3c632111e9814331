"""Replica networks for ONNX Runtime: R copies of an operator in an ONNX model, fused as in any network.

Copies of an operator whose output has its input's shape form a chain. Copies of other operators read the same inputs,
and each output ends in a sink that costs little in the output's layout::

    in0 -> (ReorderInput) -> Conv c1 -> depthwise Conv of one pixel + sink0 = sink1      packed (NCHWc)
                          -> Conv c2 -> depthwise Conv of one pixel + sink1 = sink2
    in0 -> Softmax c1 -> Size, in0 -> Softmax c2 -> Size; Max of all sizes               plain

All copies share the node that packs an input, whose cost therefore cancels in the difference of two lengths.

A whole SubNet is written without weights, too, and its operators are timed in place. ONNX Runtime's profiler tells how
long each kernel of a run took. Nodes of step 7, and the tensors that they write, have names that begin with ``s7.``.
The optimizer derives the names of its nodes from these names, so that a kernel's step is known.

Sinks depend on the layout: plain, or NCHWc, where blocks of c channels lie side by side. ONNX Runtime's layout pass
(``NchwcTransformer``) packs convolutions and poolings of images, on processors whose kernels use blocks (x86-64: 8
channels, 16 with AVX-512). A dense convolution with fewer input channels than a block reads the plain layout.
"""

import math
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.printer
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from autotailor.ir.execution.onnx_writer import IR_VERSION, OPSET, unfused, write_node
from autotailor.ir.feature import OPERANDS, OperatorFeature, Shape, freeze_attributes
from autotailor.ir.fusion.sequence import PlacedOperator, ends_of, image_of
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import OperatorRule, rules
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.copies import copies
from autotailor.profiling.runtimes.feature_nodes import FeatureNodes, feature_nodes

CHAINED = frozenset({"Conv", "Add", "Sub", "Mul", "Softmax", "LayerNormalization", "BatchNormalization", "MatMul"})
"""Kinds, besides the elementwise ones, whose copies may form a chain: the optimizer never merges two of them."""
CONDITIONED = frozenset({"Where"})
"""Kinds whose first operand is a condition, which holds booleans."""

ALIGNMENT = 4
"""Convolutions whose channels are no multiple of this number stay plain; poolings need whole blocks."""
POOLINGS = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})


class Model:
    """A model that grows node by node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.ValueInfoProto] = []

    def reads(self, name: str, shape: Shape) -> None:
        """Adds an input."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def declares(self, name: str, shape: Shape) -> None:
        """Adds a weight that the runner draws."""
        self.weights.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def returns(self, name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> None:
        """Adds an output."""
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def add(self, node: Node) -> None:
        """Adds a node."""
        self.nodes.append(node)

    def computes(self, feature: OperatorFeature, activations: Sequence[str], name: str) -> FeatureNodes:
        """Adds the nodes and weights of an operator's copy, which is called ``name`` and reads ``activations``."""
        made = feature_nodes(feature, activations, name)
        for weight, shape in made.weights.items():
            self.declares(weight, shape)
        self.nodes.extend(made.nodes)
        return made

    def text(self) -> str:
        """The model in ONNX's syntax, at an opset that has all of the model's operators."""
        opset = max(OPSET, *((rules.find(node.kind) or OperatorRule()).opset(node) for node in self.nodes))
        written = [write_node(node, opset) for node in unfused(self.nodes)]
        constants = [constant for _, more in written for constant in more]
        nodes = [proto for proto, _ in written]
        graph = helper.make_graph(nodes, "model", self.inputs, self.outputs, constants, value_info=self.weights)
        opsets = [helper.make_opsetid("", opset)]
        version = helper.find_min_ir_version_for(opsets)
        return str(onnx.printer.to_text(helper.make_model(graph, ir_version=version, opset_imports=opsets)))


def weight_mb(feature: OperatorFeature) -> float:
    """Memory of one copy's weights in MiB: two sessions hold the weights as read and as reordered by the runtime."""
    return 4 * sum(math.prod(shape) for shape in feature.weights) * 4 / 2**20


def replica_program(feature: OperatorFeature) -> Program:
    """The replica network of a fused operator."""
    short, long = copies(feature, weight_mb(feature))
    model = Model()
    shapes = feature.inputs
    for i, shape in enumerate(shapes):
        model.reads(f"in{i}", shape)
    chained, reads = is_chained(feature), [f"in{i}" for i in range(len(shapes))]
    if feature.kind in CONDITIONED and feature.attribute(OPERANDS, "x")[0] == "x":  # otherwise it is a weight
        reads[0] = _condition(model, reads[0])
    if chained:
        _chain(model, feature, (short, long))
    else:
        outputs = [model.computes(feature, reads, f"c{i}").output for i in range(1, long + 1)]
        if writes_packed(feature) and feature.outputs[0][1] % ALIGNMENT == 0:
            shapes = (*shapes, _packed_sinks(model, feature, outputs, (short, long)))
        else:
            _plain_sinks(model, outputs, (short, long))
    return Program(
        key=feature.id,
        param=model.text(),
        inputs=tuple(shape[1:] for shape in shapes),
        short=f"k{short}",
        long=f"k{long}",
        copies=(short, long),
        sink=not chained,
        memory_mb=long * weight_mb(feature),
    )


def is_chained(feature: OperatorFeature) -> bool:
    """Whether copies of an operator form a chain, each reading the output of the one before, as in a network."""
    if _adds(feature):
        return True
    rule = rules.find(feature.kind) or OperatorRule()
    same = bool(feature.inputs) and feature.outputs == feature.inputs[:1] and feature.kind not in CONDITIONED
    unchanged = feature.kind != "Conv" or reads_packed(feature) == writes_packed(feature)
    return same and unchanged and (feature.kind in CHAINED or rule.elementwise)


def _adds(feature: OperatorFeature) -> bool:
    """Whether an operator adds a residual, which is its last input."""
    return any(follower.kind == "Add" for follower in feature.followers)


def _condition(model: Model, name: str) -> str:
    """Turns a tensor into booleans for all copies; returns the booleans' name."""
    attributes = freeze_attributes({"to": int(TensorProto.BOOL)})
    model.add(Node(f"{name}.condition", "Cast", (name,), (f"{name}.condition",), attributes))
    return f"{name}.condition"


def _chain(model: Model, feature: OperatorFeature, lengths: tuple[int, int]) -> None:
    """Adds copies in a chain: each reads the output before it as first input, or as residual if it adds one."""
    names = [f"in{i}" for i in range(len(feature.inputs))]
    place = len(names) - 1 if _adds(feature) else 0
    before = _packed(model, feature.inputs[place], names[place]) if place and writes_packed(feature) else names[place]
    for i in range(1, lengths[1] + 1):
        before = model.computes(feature, [*names[:place], before, *names[place + 1 :]], f"c{i}").output
        if i in lengths:
            model.add(Node(f"end{i}", "Identity", (before,), (f"k{i}",)))
            model.returns(f"k{i}", feature.outputs[0])


def _packed(model: Model, shape: Shape, name: str) -> str:
    """Packs a tensor with a depthwise convolution of one pixel; returns the packed tensor's name."""
    weight = f"{name}.packing"
    model.declares(weight, (shape[1], 1, 1, 1))
    attributes = freeze_attributes({"group": shape[1], "kernel_shape": (1, 1)})
    model.add(Node(f"{name}.packed", "Conv", (name, weight), (f"{name}.packed",), attributes))
    return f"{name}.packed"


def _packed_sinks(model: Model, feature: OperatorFeature, outputs: Sequence[str], lengths: tuple[int, int]) -> Shape:
    """Ends packed outputs in convolutions of one pixel and sums these up; returns the shape of the sum's first term."""
    channels, height, width = feature.outputs[0][1:]
    shape = (1, channels, 1, 1)
    model.reads("seed", shape)
    model.declares("sink.w", (channels, 1, 1, 1))
    attributes = freeze_attributes({"group": channels, "kernel_shape": (1, 1), "strides": (height, width)})
    before = _packed(model, shape, "seed")
    for i, output in enumerate(outputs, 1):
        model.add(Node(f"pixel{i}", "Conv", (output, "sink.w"), (f"pixel{i}",), attributes))
        model.add(Node(f"sum{i}", "Add", (f"pixel{i}", before), (f"sum{i}",)))
        before = f"sum{i}"
        if i in lengths:
            model.add(Node(f"end{i}", "Identity", (before,), (f"k{i}",)))
            model.returns(f"k{i}", shape)
    return shape


def _plain_sinks(model: Model, outputs: Sequence[str], lengths: tuple[int, int]) -> None:
    """Ends plain outputs in nodes that need no more than an output's size."""
    for i, output in enumerate(outputs, 1):
        model.add(Node(f"size{i}", "Size", (output,), (f"size{i}",)))
        if i in lengths:
            model.add(Node(f"k{i}", "Max", tuple(f"size{j}" for j in range(1, i + 1)), (f"k{i}",)))
            model.returns(f"k{i}", (), TensorProto.INT64)


def sink_program(count: int = 16) -> Program:
    """Sinks without operators, which show the cost of one sink.

    The sinks are those of packed outputs. Sinks of plain outputs are not timed separately, as they are one node, too.
    """
    shape = (1, 64, 14, 14)
    image = OperatorFeature("MaxPool", (shape,), (shape,))
    model = Model()
    model.reads("in0", shape)
    model.add(Node("pack", "MaxPool", ("in0",), ("packed",), freeze_attributes({"kernel_shape": (1, 1)})))
    seed = _packed_sinks(model, image, ["packed"] * count, (1, count))
    return Program("sink", model.text(), (shape[1:], seed[1:]), f"k{count}", "k1", (1, count))


def harness_program() -> Program:
    """A network that does nothing, which shows the cost of one call."""
    model = Model()
    model.reads("in0", (1, 4))
    model.add(Node("out", "Relu", ("in0",), ("k1",)))
    model.returns("k1", (1, 4))
    return Program("harness", model.text(), ((4,),), "k1")


def network_program(key: str, operators: Sequence[PlacedOperator], shape: tuple[int, ...]) -> Program:
    """The program of a SubNet, see ``InPlaceRuntime.written``."""
    model = Model()
    model.reads("in0", (1, *shape))
    tensors = {image_of(key, operators): "in0"}
    for i, operator in enumerate(operators):
        made = model.computes(operator.feature, [tensors[name] for name in operator.inputs], f"s{i}")
        ends = made.nodes[-1].outputs if len(operator.outputs) > 1 else (made.output,)
        tensors |= dict(zip(operator.outputs, ends, strict=True))
    outputs = {tensors[end.outputs[0]]: end.feature.outputs[0] for end in ends_of(operators)}
    for name, returned in outputs.items():
        model.returns(name, returned)
    return Program(
        key=key,
        param=model.text(),
        inputs=(shape,),
        long=" ".join(outputs),
        steps=tuple((operator.feature.id, f"s{i}") for i, operator in enumerate(operators)),
        memory_mb=sum(weight_mb(operator.feature) for operator in operators),
    )


@cache
def block_size() -> int:
    """Channels of a block on this machine, 1 where there is no packed layout.

    Optimizing a small convolution shows the number.
    """
    weight = numpy_helper.from_array(np.ones((1, 3, 1, 1), dtype=np.float32), "w")
    image, result = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, c, 4, 4)) for n, c in (("x", 3), ("y", 1)))
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "probe", [image], [result], [weight])
    model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        optimized = onnx.load(options.optimized_model_filepath)
    return int(optimized.graph.initializer[0].dims[0])


def writes_packed(feature: OperatorFeature) -> bool:
    """Whether an operator writes its output in the packed layout."""
    if block_size() == 1 or len(feature.outputs[0]) != 4:
        return False
    if feature.kind in POOLINGS:
        return feature.inputs[0][1] % block_size() == 0
    return feature.kind == "Conv" and _is_packed(feature)


def reads_packed(feature: OperatorFeature) -> bool:
    """Whether an operator reads its first input in the packed layout."""
    if feature.kind == "Conv" and feature.attribute("group", 1) == 1 and feature.weights[0][1] < block_size():
        return False
    return writes_packed(feature)


def _is_packed(feature: OperatorFeature) -> bool:
    """Whether the layout pass packs a convolution."""
    group, block = feature.attribute("group", 1), block_size()
    outputs, inputs = feature.weights[0][:2]
    if group == 1:
        return inputs < block or inputs % ALIGNMENT == 0
    depthwise = inputs == 1 and outputs == group
    aligned = inputs % block == 0 and (outputs // group) % block == 0
    return outputs % ALIGNMENT == 0 and (depthwise or aligned)
