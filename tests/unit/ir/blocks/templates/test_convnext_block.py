"""ConvNeXtBlock: with pointwise convolutions, with matrices between transpositions, and what is none."""

import pytest

from trunk_blocks import found_in

DEPTHWISE = "a = Conv <group = 8, kernel_shape = [7, 7], pads = [3, 3, 3, 3]> (x, k)"
MATRICES = (
    "b = Transpose <perm = [0, 2, 3, 1]> (a)  c = LayerNormalization (b, g)  d = MatMul (c, i)  e = Erf (d)"
    "  f = MatMul (e, o)  h = Transpose <perm = [0, 3, 1, 2]> (f)  t = Add (x, h)"
)
POINTWISE = "d = Conv (a, i)  e = Relu (d)  h = Conv (e, o)  t = Add (h, x)"


@pytest.mark.parametrize(
    ("dense", "sizes"),
    [(MATRICES, {"g": (8,), "i": (8, 24), "o": (24, 8)}), (POINTWISE, {"i": (24, 8, 1, 1), "o": (8, 24, 1, 1)})],
    ids=["matrices", "pointwise"],
)
def test_a_depthwise_kernel_and_two_dense_layers_with_a_sum(dense: str, sizes: dict[str, tuple[int, ...]]) -> None:
    (block,) = found_in(f"{DEPTHWISE}  {dense}", k=(8, 1, 7, 7), **sizes)
    assert (block.kind, block.removable) == ("ConvNeXtBlock", True)
    ratio, kernel = block.handles["expand_ratio"], block.handles["kernel_size"]
    assert (ratio.relative_to, [atom.meta for atom in ratio.atoms]) == ("in", [24])
    assert kernel.sizes() == (3, 5, 7)


def test_a_dense_kernel_in_front_is_none() -> None:
    body = f"{DEPTHWISE.replace('group = 8, ', '')}  {POINTWISE}"
    (block,) = found_in(body, k=(8, 8, 7, 7), i=(24, 8, 1, 1), o=(8, 24, 1, 1))
    assert block.kind == "Residual"
