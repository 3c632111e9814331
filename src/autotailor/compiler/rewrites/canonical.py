"""Canonical forms of operators: defaults are written out, and several ways of writing an operator become one.

Requires static shapes at opset 20 or newer. A canonicaliser is a function of one node that changes or replaces the
node in place.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from autotailor.compiler.passes.folding import tidy
from autotailor.ir.errors import GraphError

Canonicaliser = Callable[[ir.Node], None]
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def canonicalise(model: ir.Model) -> None:
    """Rewrites every node in its canonical form, in place.

    Raises:
        GraphError: a BatchNormalization or Dropout is in training mode, or a window does not fit its map.
    """
    for node in list(model.graph):
        rewrite = _CANONICALISERS.get(node.op_type)
        if rewrite is not None and not node.domain:
            rewrite(node)
    tidy(model)


def shape_of(value: ir.Value | None) -> tuple[int, ...]:
    """Static shape of a value.

    Raises:
        GraphError: the value has no static shape.
    """
    if value is None or value.shape is None or not all(isinstance(size, int) for size in value.shape):
        raise GraphError(f"tensor {value.name if value else ''}: its shape cannot be inferred")
    return tuple(int(size) for size in value.shape)  # type: ignore[arg-type]


def _resolve_auto_pad(node: ir.Node) -> None:
    """Writes ``auto_pad`` as pads. An axis needs (out - 1) stride + span - in pads."""
    mode = _write_window(node)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        axes = _axes(node)
        _write_pads(node, mode, [max((math.ceil(n / stride) - 1) * stride + span - n, 0) for n, stride, span in axes])


def _resolve_output_shape(node: ir.Node) -> None:
    """Writes ``auto_pad`` and ``output_shape`` of a transposed convolution as pads, or as output padding if negative.

    An axis has (in - 1) stride + span + output padding - out pads.
    """
    mode, given = _write_window(node), node.attributes.pop("output_shape", None)
    if mode not in ("SAME_UPPER", "SAME_LOWER") and given is None:
        return
    axes, outs = _axes(node), shape_of(node.outputs[0])[2:]
    padding = _ints(node, "output_padding", (0,) * len(outs))
    totals = [(n - 1) * s + span + more - out for (n, s, span), more, out in zip(axes, padding, outs, strict=True)]
    _write_pads(node, mode, [max(total, 0) for total in totals])
    padding = [more - min(total, 0) for more, total in zip(padding, totals, strict=True)]
    node.attributes["output_padding"] = ir.AttrInt64s("output_padding", padding)


def _write_window(node: ir.Node) -> str:
    """Writes out the kernel's shape, and leaves out what says nothing; returns ``auto_pad``, which goes as well."""
    mode = _string(node, "auto_pad", "NOTSET")
    _check_window(node)
    node.attributes.pop("auto_pad", None)
    if _int(node, "ceil_mode", 0) == 0:
        node.attributes.pop("ceil_mode", None)  # the same operator may lack this attribute at opset 17
    if kernel := _kernel(node):
        node.attributes["kernel_shape"] = ir.AttrInt64s("kernel_shape", kernel)
    return mode


def _axes(node: ir.Node) -> list[tuple[int, int, int]]:
    """Size, stride and extent of the dilated kernel along each spatial axis."""
    kernel, sizes = _kernel(node), shape_of(node.inputs[0])[2:]
    strides, dilations = (_ints(node, name, (1,) * len(kernel)) for name in ("strides", "dilations"))
    return [(n, s, d * (k - 1) + 1) for n, s, d, k in zip(sizes, strides, dilations, kernel, strict=True)]


def _write_pads(node: ir.Node, mode: str, totals: Sequence[int]) -> None:
    """Writes the pads of each axis, of which SAME_UPPER has an odd one at the end, and other modes at the begin."""
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    node.attributes["pads"] = ir.AttrInt64s("pads", small + large if mode == "SAME_UPPER" else large + small)


def _check_window(node: ir.Node) -> None:
    """Refuses window sizes that ONNX's checker accepts: zeros, and lists that do not have one size per axis."""
    rank = len(shape_of(node.inputs[0])) - 2
    kernel = _kernel(node)
    lists = {"kernel_shape": kernel, **{n: _ints(node, n, (1,) * rank) for n in ("strides", "dilations")}}
    wrong = [
        f"{name} {list(values)}" for name, values in lists.items() if len(values) != rank or min(values, default=1) < 1
    ]
    if len(_ints(node, "pads", (0,) * (2 * rank))) != 2 * rank:
        wrong.append(f"pads {list(_ints(node, 'pads', ()))}")
    if _int(node, "group", 1) < 1:
        wrong.append(f"group {_int(node, 'group', 1)}")
    if rank < 1 or wrong:
        raise GraphError(
            f"node {node.name}: {node.op_type} over a map with {rank} axes cannot have {', '.join(wrong)}; "
            f"export it again"
        )


def _kernel(node: ir.Node) -> Sequence[int]:
    if node.op_type in ("Conv", "ConvTranspose"):
        return shape_of(node.inputs[1])[2:]
    return _ints(node, "kernel_shape", ())


def _write_split(node: ir.Node) -> None:
    """Writes the sizes of the parts as an input, also where the file gives only their number."""
    node.attributes.pop("num_outputs", None)
    if len(node.inputs) < 2 or node.inputs[1] is None:
        axis = _int(node, "axis", 0)
        _set_constant(node, 1, [shape_of(value)[axis] for value in node.outputs])


def _write_squeeze(node: ir.Node) -> None:
    """Writes out the axes of a Squeeze without axes: it drops every axis of size 1."""
    if len(node.inputs) < 2 or node.inputs[1] is None:
        _set_constant(node, 1, [axis for axis, size in enumerate(shape_of(node.inputs[0])) if size == 1])


def _write_reduction(node: ir.Node) -> None:
    """Writes out the axes of a reduction without axes: it reduces all axes, or none if an attribute says so."""
    nothing = _int(node, "noop_with_empty_axes", 0)
    node.attributes.pop("noop_with_empty_axes", None)
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    if axes is not None and (axes.const_value is None or axes.const_value.size):
        return
    if nothing:
        _pass_through(node)
    else:
        _set_constant(node, 1, list(range(len(shape_of(node.inputs[0])))))


def _write_sum(node: ir.Node) -> None:
    """Writes a Sum of several tensors as a chain of Adds."""
    operands = [value for value in node.inputs if value is not None]
    assert node.graph is not None
    if len(operands) == 1:
        _pass_through(node)
        return
    total = operands[0]
    for position, operand in enumerate(operands[1:], 1):
        added = ir.node("Add", [total, operand], name=f"{node.name or node.outputs[0].name}/{position}")
        node.graph.insert_before(node, added)
        total = added.outputs[0]
        total.name = f"{node.outputs[0].name}/{position}"
        total.type = node.outputs[0].type
        total.shape = ir.Shape(np.broadcast_shapes(*(shape_of(value) for value in operands[: position + 1])))
    _replace(node, total)


def _write_extremum(node: ir.Node) -> None:
    """Removes a Max, Min or Mean of a single tensor."""
    if len(node.inputs) == 1:
        _pass_through(node)


def _write_pad(node: ir.Node) -> None:
    """Writes the pads of some axes (opset 18) as pads of all axes."""
    if len(node.inputs) < 4 or node.inputs[3] is None:
        return
    pads, axes = (_constant(node.inputs[slot]) for slot in (1, 3))
    if pads is None or axes is None:
        return
    rank = len(shape_of(node.inputs[0]))
    full = [0] * (2 * rank)
    for position, axis in enumerate(axes):
        full[axis % rank], full[axis % rank + rank] = int(pads[position]), int(pads[position + len(axes)])
    _set_constant(node, 1, full)
    node.resize_inputs(3)


def _write_gemm(node: ir.Node) -> None:
    """Multiplies the factors of a Gemm into its constant matrix and bias, because ncnn's converter misreads factors.

    alpha A B + beta C        becomes        A (alpha B) + (beta C)
    """
    for name, slot in (("alpha", 1), ("beta", 2)):
        attribute = node.attributes.get(name)
        factor = 1.0 if attribute is None else attribute.as_float()
        value = node.inputs[slot] if len(node.inputs) > slot else None
        if factor != 1.0 and value is not None:
            if value.const_value is None:
                continue
            _set_constant(node, slot, value.const_value.numpy() * np.float32(factor))
        node.attributes.pop(name, None)


def _write_resize(node: ir.Node) -> None:
    """Removes the region of interest from a Resize that does not crop to it, and options of opset 18 at their defaults.

    At opset 17, at which most networks are exported, the same Resize lacks these attributes.
    """
    if _int(node, "antialias", 0) == 0:
        node.attributes.pop("antialias", None)
    if _string(node, "keep_aspect_ratio_policy", "stretch") == "stretch":
        node.attributes.pop("keep_aspect_ratio_policy", None)
    if _string(node, "coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize" and len(node.inputs) > 1:
        node.replace_input_with(1, None)


def _write_group_normalization(node: ir.Node) -> None:
    """Writes gains and shifts per group (opset 18) per channel (opset 21).

    With one group per channel, the node becomes an InstanceNormalization.
    """
    channels = shape_of(node.inputs[0])[1]
    if _int(node, "num_groups", 0) == channels:
        node.op_type = "InstanceNormalization"
        node.attributes.pop("num_groups", None)
        node.attributes.pop("stash_type", None)
        return
    for slot in (1, 2):
        value = node.inputs[slot]
        gains = None if value is None or value.const_value is None else value.const_value.numpy()
        if gains is not None and gains.size != channels and channels % gains.size == 0:
            _set_constant(node, slot, np.repeat(gains, channels // gains.size))


def _write_recurrent(node: ir.Node) -> None:
    """Removes first states of zeros, as nothing means the same, and zeros have the batch of the export."""
    for slot in (5, 6):
        state = (*node.inputs, *[None] * 7)[slot]
        if state is not None and state.const_value is not None and not state.const_value.numpy().any():
            node.replace_input_with(slot, None)


def _check_batch_normalization(node: ir.Node) -> None:
    if _int(node, "training_mode", 0):
        raise GraphError(
            f"node {node.name}: BatchNormalization takes mean and variance of the batch; export the network in eval "
            f"mode, and build it with running statistics (track_running_stats=True)"
        )
    node.attributes.pop("training_mode", None)


def _check_dropout(node: ir.Node) -> None:
    training = node.inputs[2] if len(node.inputs) > 2 else None
    if training is not None and (training.const_value is None or training.const_value.numpy().any()):
        raise GraphError(
            f"node {node.name}: Dropout sets values to zero at random; export the network in eval mode, and call "
            f"F.dropout with training=self.training"
        )


def _drop_view(node: ir.Node) -> None:
    """Removes a view that does not change the shape."""
    if shape_of(node.inputs[0]) == shape_of(node.outputs[0]):
        _pass_through(node)


_CANONICALISERS: dict[str, Canonicaliser] = {
    **dict.fromkeys(("Conv", "MaxPool", "AveragePool", "LpPool"), _resolve_auto_pad),
    "ConvTranspose": _resolve_output_shape,
    **{f"Reduce{kind}": _write_reduction for kind in _REDUCTIONS},
    **dict.fromkeys(("Max", "Min", "Mean"), _write_extremum),
    **dict.fromkeys(("Reshape", "Flatten", "Expand", "Tile"), _drop_view),
    "Split": _write_split,
    "Squeeze": _write_squeeze,
    "Sum": _write_sum,
    "Pad": _write_pad,
    "Resize": _write_resize,
    "Gemm": _write_gemm,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _write_recurrent),
    "GroupNormalization": _write_group_normalization,
    "BatchNormalization": _check_batch_normalization,
    "Dropout": _check_dropout,
}


def _int(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()


def _ints(node: ir.Node, name: str, default: Sequence[int]) -> Sequence[int]:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_ints()


def _string(node: ir.Node, name: str, default: str) -> str:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_string()


def _constant(value: ir.Value | None) -> list[int] | None:
    if value is None or value.const_value is None:
        return None
    return [int(number) for number in value.const_value.numpy().ravel()]


def _set_constant(node: ir.Node, slot: int, value: Sequence[int] | npt.NDArray[Any]) -> None:
    """Makes one input of a node a new constant."""
    array = value if isinstance(value, np.ndarray) else np.array(value, dtype=np.int64)
    tensor = ir.tensor(array)
    name = f"{node.outputs[0].name}.{slot}"
    constant = ir.Value(name=name, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
    assert node.graph is not None
    node.graph.register_initializer(constant)
    if len(node.inputs) <= slot:
        node.resize_inputs(slot + 1)
    node.replace_input_with(slot, constant)


def _pass_through(node: ir.Node) -> None:
    """Replaces a node by an Identity, which ``tidy`` removes where it can."""
    assert node.graph is not None
    same = ir.node("Identity", [node.inputs[0]])
    node.graph.insert_before(node, same)
    same.outputs[0].shape, same.outputs[0].type = node.outputs[0].shape, node.outputs[0].type
    _replace(node, same.outputs[0])


def _replace(node: ir.Node, value: ir.Value) -> None:
    """Removes a node; ``value`` replaces the node's first output and takes its name."""
    assert node.graph is not None
    name = node.outputs[0].name
    node.outputs[0].name = None
    node.outputs[0].replace_all_uses_with(value, replace_graph_outputs=True)
    value.name = name
    node.graph.remove(node, safe=True)
