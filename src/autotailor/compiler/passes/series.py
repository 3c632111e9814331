"""Signals ``[n, channels, length]`` become maps ``[n, channels, 1, length]``, because maps are what is cut and timed.

Convolutions and poolings along a length are those of maps with kernels of ``1 x k``; what treats every number alike, or
every channel, reads maps as it read signals. Any other operator reads the signal, behind a Squeeze.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from autotailor.compiler.passes.folding import tidy

SERIES = "autotailor.series"
"""The model's property that says that the file took a signal."""
HEIGHT = 2
"""The axis of a map that a signal lacks."""
SLIDING = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool")
_ALIKE = """
Abs Add BatchNormalization Cast Celu Clip Div Elu Erf Exp Gelu GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish
LeakyRelu Log Max Min Mish Mul Neg PRelu Pow Relu Selu Sigmoid Softplus Softsign Sqrt Sub Sum Tanh
"""
ALIKE = frozenset(_ALIKE.split())
"""Operators that read maps as they read signals; constants beside the signal are broadcast."""
_SIDES = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0}


def lift_series(model: ir.Model) -> None:
    """Lets a model take maps of height 1 where it takes signals, in place; constants are folded, ranks are known."""
    image = model.graph.inputs[0]
    if image.shape is None or len(image.shape) != HEIGHT + 1:
        return
    model.metadata_props[SERIES] = "1"
    nodes, maps = list(model.graph), dict[ir.Value, ir.Value]()
    _let_down(model, image, None, maps)
    for node in nodes:
        if not node.domain and _lifted(model, node, maps):
            for result in node.outputs:
                if result.shape is not None and len(result.shape) == HEIGHT + 1:
                    _let_down(model, result, node, maps)
    for node in model.graph:
        for value in node.outputs:
            value.shape = None
    tidy(model)


def _let_down(model: ir.Model, value: ir.Value, writer: ir.Node | None, maps: dict[ir.Value, ir.Value]) -> None:
    """Makes a map of a signal, which readers read behind a Squeeze; they may be lifted later."""
    name, shape = str(value.name), list(value.shape or ())
    squeeze = ir.node("Squeeze", [value, _constant(model, f"{name}:height", [HEIGHT])], name=f"{name}:signal")
    signal = squeeze.outputs[0]
    signal.name, signal.shape, signal.type = f"{name}:signal", ir.Shape(shape), value.type
    ir.convenience.replace_all_uses_with(value, signal, replace_graph_outputs=True)
    squeeze.replace_input_with(0, value)
    if signal.is_graph_output():
        value.name, signal.name = f"{name}:map", name
    value.shape = ir.Shape([*shape[:HEIGHT], 1, *shape[HEIGHT:]])
    if writer is None:
        model.graph.insert_before(model.graph[0], squeeze)
    else:
        model.graph.insert_after(writer, squeeze)
    maps[signal] = value


def _lifted(model: ir.Model, node: ir.Node, maps: dict[ir.Value, ir.Value]) -> bool:
    """Lets a node read maps, where it can; returns whether it does."""
    signals = [value for value in node.inputs if value is not None and value.const_value is None]
    if not signals or any(value.shape is None or len(value.shape) != HEIGHT + 1 for value in signals):
        return False
    kind = node.op_type
    if kind in SLIDING:
        _slide(model, node)
    elif not any(value in maps for value in signals):
        return False
    elif kind in ("Concat", "Split"):
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        node.attributes["axis"] = ir.AttrInt64("axis", _axes([axis])[0])
    elif kind.startswith("Reduce") and len(node.inputs) == 2 and node.inputs[1] is not None:
        axes = _axes(int(axis) for axis in _numbers(node.inputs[1]))
        if HEIGHT + 1 not in axes:
            return False
        node.replace_input_with(1, _constant(model, f"{node.name}:axes", sorted([HEIGHT, *axes])))
    elif kind in ALIKE:
        for slot, value in enumerate(node.inputs):
            if value is not None and value.const_value is not None and len(_numbers(value).shape) > 1:
                node.replace_input_with(slot, _stretched(model, node, value, -2))
    elif kind != "Flatten" or node.attributes.get("axis", ir.AttrInt64("axis", 1)).as_int() != 1:
        return False
    for slot, value in enumerate(node.inputs):
        if value in signals:
            node.replace_input_with(slot, maps.get(value) or _lift(model, node, value))
    return True


def _slide(model: ir.Model, node: ir.Node) -> None:
    """Gives a convolution or a pooling a kernel of height 1."""
    for name, beside in _SIDES.items():
        if name in node.attributes:
            node.attributes[name] = ir.AttrInt64s(name, [beside, *node.attributes[name].as_ints()])
    if "pads" in node.attributes:
        begin, end = node.attributes["pads"].as_ints()
        node.attributes["pads"] = ir.AttrInt64s("pads", [0, begin, 0, end])
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        node.replace_input_with(1, _stretched(model, node, node.inputs[1], HEIGHT))


def _axes(axes: Iterable[int]) -> list[int]:
    """Axes of maps for axes of signals."""
    positive = (axis % (HEIGHT + 1) for axis in axes)
    return [axis + (axis >= HEIGHT) for axis in positive]


def _lift(model: ir.Model, node: ir.Node, signal: ir.Value) -> ir.Value:
    """The map of a signal that an operator on signals wrote, in front of a node."""
    name = f"{signal.name}:map"
    lift = ir.node("Unsqueeze", [signal, _constant(model, f"{node.name}:{name}:height", [HEIGHT])], name=name)
    lift.outputs[0].name, lift.outputs[0].type = f"{node.name}:{name}", signal.type
    model.graph.insert_before(node, lift)
    return lift.outputs[0]


def _stretched(model: ir.Model, node: ir.Node, weight: ir.Value, axis: int) -> ir.Value:
    """A constant with one axis more."""
    place = axis if axis >= 0 else len(_numbers(weight).shape) + 1 + axis
    return _constant(model, f"{weight.name}:{node.name}", np.expand_dims(_numbers(weight), place))


def _numbers(value: ir.Value) -> np.ndarray:  # type: ignore[type-arg]
    assert value.const_value is not None
    return value.const_value.numpy()


def _constant(model: ir.Model, name: str, numbers: Sequence[int] | np.ndarray) -> ir.Value:  # type: ignore[type-arg]
    """A new initializer."""
    array = np.asarray(numbers, dtype=np.int64 if isinstance(numbers, list) else None)
    value = ir.Value(name=name, const_value=ir.tensor(array, name=name))
    value.shape, value.type = ir.Shape(array.shape), ir.TensorType(value.const_value.dtype)  # type: ignore[union-attr]
    model.graph.register_initializer(value)
    return value
