"""Assignments to slices: they hold for any batch, and channels come and go where the assigned range allows it."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from onnx_text import HEAD, KERNEL, model_of
from reference import assert_reads, assert_same


def assigning(body: str, base: Sequence[int], box: tuple[slice, ...], step: int = 1) -> onnx.ModelProto:
    """A map ``c`` of [1, 4, 8, 8], nodes that assign to a box of its first axes, and a classifier."""
    grid = np.stack(np.meshgrid(*(np.arange(4)[part] * step for part in box), indexing="ij"), -1)
    weights = {
        "w": KERNEL,
        "fc": np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32),
        "zeros": np.zeros(base, np.float32),
        "at": grid,
        **{"from": [0], "to": [2], "channels": [1]},
    }
    return model_of(
        f"c = Conv <pads = [1, 1, 1, 1]> (x, w)  h = Slice (c, from, to, channels)  {body}  {HEAD}", weights
    )


WHOLE = (1, 4, 8, 8)
WRITTEN = {
    "channels of zeros": ("t = ScatterND (zeros, at, h)", (slice(0, 1), slice(1, 3)), ["Pad"]),
    "first channels": ("t = ScatterND (c, at, h)", (slice(0, 1), slice(0, 2)), ["Concat"]),
    "last channels": ("t = ScatterND (c, at, h)", (slice(0, 1), slice(2, 4)), ["Concat"]),
    "inner channels": ("t = ScatterND (c, at, h)", (slice(0, 1), slice(1, 3)), ["Concat"]),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_an_assignment_is_written_without_indices_and_computes_the_same(case: str) -> None:
    body, box, kinds = WRITTEN[case]
    model = assigning(body, WHOLE, box)
    graph = assert_reads(model)
    found = {node.kind for node in graph.nodes}
    assert "ScatterND" not in found
    assert found >= set(kinds)
    assert_same(model)


def test_other_assignments_keep_their_indices_and_run_with_any_batch() -> None:
    every_second = assigning("t = ScatterND (zeros, at, h)", WHOLE, (slice(0, 1), slice(0, 2)), step=2)
    assert "ScatterND" in {node.kind for node in assert_same(every_second).graph.nodes}
