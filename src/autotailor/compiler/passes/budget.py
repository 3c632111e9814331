"""Limits the memory of constant folding, before anything is allocated.

A file of 200 bytes can ask for a constant of terabytes (ConstantOfShape, Expand, Tile, Range, Resize, the sum of a row
and a column). ONNX's inference tells the size of each operator's result from the few numbers that determine the
result's shape. The limit of a file is a multiple of the size of its weights, plus a constant for results that it
computes without weights.
"""

import math
from collections.abc import Iterator, Mapping

import onnx
import onnx_ir as ir
from onnx import helper

from autotailor.ir.errors import GraphError

OUT_OF_NOTHING = 1 << 30  # bytes; the onnx package's VGG-19 makes its 600 MB of weights by ConstantOfShape
CHAIN = 8  # operators that each weight of a file may pass through
_FEW = 1024  # elements; only inputs up to this size can be shapes, so that inference needs their values
_AS_VALUES_SAY = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"})
"""Operators whose result's size depends on values, but has at most the input's elements times the input's axes."""
_NEVER = frozenset({"Attention", "ConvInteger", "DeformConv", "MaxUnpool", "QLinearConv", "RoiAlign", "STFT"})
"""Operators whose working memory cannot be told from their result; exporters do not apply them to constants."""
_COORDINATES = 64  # bytes of working memory that ONNX's reference takes for each byte that Resize writes


class Budget:
    """Bytes that folding one model may still write."""

    def __init__(self, model: ir.Model) -> None:
        self._left = OUT_OF_NOTHING + CHAIN * sum(_stored(model))
        self._opsets = model.opset_imports
        self._seen: set[str] = set()

    def allows(self, node: ir.Node) -> bool:
        """Whether a node of constants can be computed; False where the size of its result is unknown.

        Raises:
            GraphError: computing the node takes more bytes than are left.
        """
        needed = needed_bytes(node, self._opsets)
        name = str(node.outputs[0].name)
        if needed is None or name in self._seen:
            return needed is not None
        if needed > self._left:
            raise GraphError(
                f"node {node.name or name}: {node.op_type} would make a constant that takes {needed / 2**30:,.1f} GiB "
                f"to compute, and {self._left / 2**30:,.1f} GiB are left for all constants of this file; store the "
                f"constant as a weight, or export the network without it"
            )
        self._seen.add(name)
        self._left -= needed
        return True


def needed_bytes(node: ir.Node, opsets: Mapping[str, int]) -> int | None:
    """Bytes that computing a node of constants takes; None where the number cannot be known."""
    constants = {str(v.name): v.const_value for v in node.inputs if v is not None and v.const_value is not None}
    if node.op_type in _AS_VALUES_SAY:
        return sum(8 * tensor.size * max(1, len(tensor.shape)) for tensor in constants.values())
    if node.op_type in _NEVER:
        return None
    try:
        protos = onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain),
            ir.to_proto(node),
            {n: helper.make_tensor_type_proto(int(t.dtype), _shape(t)) for n, t in constants.items()},
            {n: ir.to_proto(t) for n, t in constants.items() if t.size <= _FEW},
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        )
    except Exception:  # the node stays unfolded; a later pass refuses it where its value is needed
        return None
    sizes = [_size(proto) for proto in protos.values()]
    if len(sizes) < sum(bool(value.name) for value in node.outputs) or None in sizes:
        return None
    return sum(size or 0 for size in sizes) * _working(node) + _padded(node)


def _stored(model: ir.Model) -> Iterator[int]:
    """Bytes of each constant that a file itself holds."""
    for value in model.graph.initializers.values():
        if value.const_value is not None:
            yield int(value.const_value.nbytes)
    for node in model.graph:
        if node.op_type == "Constant" and "value" in node.attributes:
            yield int(node.attributes["value"].as_tensor().nbytes)


def _shape(tensor: ir.TensorProtocol) -> list[int]:
    return [int(size) for size in tensor.shape]  # type: ignore[arg-type]


def _size(proto: onnx.TypeProto) -> int | None:
    """Bytes of a tensor; None where its shape is not known."""
    tensor = proto.tensor_type
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        return None
    sizes = [int(dim.dim_value) for dim in tensor.shape.dim]
    kind = ir.DataType(tensor.elem_type)
    return max(0, math.prod(sizes)) * (8 if kind == ir.DataType.STRING else max(1, int(kind.itemsize)))


def _working(node: ir.Node) -> int:
    """Working memory for each byte of the result; windowed operators copy the window of every output pixel."""
    if node.op_type == "Resize":
        return _COORDINATES
    if "kernel_shape" in node.attributes:
        return math.prod(node.attributes["kernel_shape"].as_ints())
    weight = node.inputs[1].const_value if node.op_type in ("Conv", "ConvTranspose") and node.inputs[1] else None
    return 1 if weight is None else math.prod(_shape(weight)[2:])


def _padded(node: ir.Node) -> int:
    """Bytes of a window's padded input, which may be far larger than the output where the stride is large."""
    tensor = node.inputs[0].const_value if node.inputs and node.inputs[0] is not None else None
    if tensor is None or "pads" not in node.attributes:
        return 0
    pads, shape = node.attributes["pads"].as_ints(), _shape(tensor)
    rank = len(pads) // 2
    spatial = zip(shape[len(shape) - rank :], pads[:rank], pads[rank:], strict=True)
    return 8 * math.prod(shape[: len(shape) - rank]) * math.prod(map(sum, spatial))
