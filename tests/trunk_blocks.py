"""Blocks that are found behind a stem of eight channels."""

import numpy.typing as npt

from autotailor.ir.blocks.block import Block
from autotailor.ir.blocks.recognition import find_blocks
from autotailor.ir.propagation import propagate
from text_graphs import graph_of

STEM = "z = Conv <pads = [1, 1, 1, 1]> (image, stem)  x = Relu (z)"
TAIL = "pooled = GlobalAveragePool (t)  flat = Flatten (pooled)  y = Gemm <transB = 1> (flat, fc)"


def found_in(body: str, **weights: npt.ArrayLike) -> tuple[Block, ...]:
    """Blocks of ONNX text that leads from the map ``x`` of eight channels to the map ``t`` of eight channels."""
    inputs = "float[1, 3, 8, 8] image"
    graph = graph_of(f"{STEM}  {body}  {TAIL}", inputs=inputs, stem=(8, 3, 3, 3), fc=(5, 8), **weights)
    return find_blocks(graph, propagate(graph))
