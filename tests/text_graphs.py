"""Graphs of the IR from ONNX text."""

import numpy as np
import numpy.typing as npt

from autotailor.compiler.normalise import normalise
from autotailor.compiler.parser import parse
from autotailor.ir.graph import Graph
from onnx_text import model_of, read


def graph_of(
    body: str,
    *,
    shape: tuple[int, ...] = (1, 3, 8, 8),
    opset: int = 20,
    inputs: str | None = None,
    **weights: npt.ArrayLike,
) -> Graph:
    """The graph from the image ``x``, or from other ``inputs``, to ``y``.

    A weight that is a tuple is the shape of random numbers of order 1.
    """
    rng = np.random.default_rng(0)
    drawn = {
        name: rng.normal(size=value).astype(np.float32) if isinstance(value, tuple) else value
        for name, value in weights.items()
    }
    return parse(normalise(read(model_of(body, drawn, shape=shape, opset=opset, inputs=inputs))), "text")
