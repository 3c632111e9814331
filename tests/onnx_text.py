"""Small networks as ONNX text: tests of the compiler state a model as the nodes between its image and its logits."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
import onnx.parser
import onnx_ir as ir
from onnx import numpy_helper

HEAD = "p = GlobalAveragePool (t)  f = Flatten (p)  y = Gemm <transB = 1> (f, fc)"
"""The end of a classifier: pooling of the map ``t``, and a matrix ``fc``."""
KERNEL = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)

Array = npt.NDArray[np.generic]


def model_of(
    body: str,
    weights: Mapping[str, npt.ArrayLike] | None = None,
    *,
    opset: int = 20,
    shape: Sequence[int | str] = (1, 3, 8, 8),
    kind: str = "float",
    inputs: str | None = None,
    outputs: str = "float[n, classes] y",
    functions: str = "",
) -> onnx.ModelProto:
    """A model from the image ``x`` to the logits ``y``.

    Args:
        body: nodes, one a line, as ONNX's textual syntax writes them.
        weights: initializers by name; numbers that are no arrays keep ONNX's usual types (int64, float32).
        opset: version of ONNX's own operators; the domains ``own`` and ``other`` have version 1.
        shape: shape of ``x``; words are symbolic axes.
        kind: type of the elements of ``x``.
        inputs: the whole list of inputs, instead of ``shape`` and ``kind``.
        outputs: the whole list of outputs.
        functions: functions of the file, in the same syntax.
    """
    inputs = inputs or f"{kind}[{', '.join(map(str, shape))}] x"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}, "own" : 1, "other" : 1]>
        g ({inputs}) => ({outputs}) {{
            {body}
        }}
        {functions}"""
    )
    stored = [numpy_helper.from_array(_array(value), name) for name, value in (weights or {}).items()]
    model.graph.initializer.extend(stored)
    return model


def read(model: onnx.ModelProto) -> ir.Model:
    """The model as passes take it, with the shapes that ONNX infers."""
    return ir.from_proto(onnx.shape_inference.infer_shapes(model, data_prop=True))


def kinds(model: ir.Model) -> list[str]:
    """Operators of a model, in order."""
    return [node.op_type for node in model.graph]


def constant(value: ir.Value | None) -> list[float]:
    """Numbers of a constant input."""
    assert value is not None
    assert value.const_value is not None
    return value.const_value.numpy().ravel().tolist()


def _array(value: npt.ArrayLike) -> Array:
    array = np.asarray(value)
    return array if isinstance(value, np.ndarray | np.generic) or array.dtype.kind != "f" else array.astype(np.float32)
