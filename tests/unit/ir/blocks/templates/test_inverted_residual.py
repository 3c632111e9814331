"""InvertedResidual and DepthwiseSeparable: with a sum, in a row, and what is none."""

import pytest

from trunk_blocks import found_in

DEPTHWISE = "c = Conv <group = 16, kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (b, k)  d = Clip (c, zero, six)"
CHAIN = f"a = Conv (x, i)  b = Clip (a, zero, six)  {DEPTHWISE}  e = Conv (d, o)"
SIZES = {"i": (16, 8, 1, 1), "k": (16, 1, 5, 5), "o": (8, 16, 1, 1), "zero": 0.0, "six": 6.0}
GATE = "g = GlobalAveragePool (d)  h = Conv (g, m)  n = Sigmoid (h)  q = Mul (d, n)  e = Conv (q, o)"


def test_expansion_depthwise_projection_with_a_sum() -> None:
    (block,) = found_in(f"{CHAIN}  t = Add (x, e)", **SIZES)
    assert (block.kind, block.removable) == ("InvertedResidual", True)
    ratio, kernel = block.handles["expand_ratio"], block.handles["kernel_size"]
    assert (ratio.relative_to, [atom.meta for atom in ratio.atoms]) == ("in", [16])
    assert (kernel.relative_to, kernel.sizes()) == (None, (3, 5))


def test_without_a_sum_it_is_a_stretch_that_ends_at_the_projection() -> None:
    (block,) = found_in(f"{CHAIN}  t = Identity (e)", **SIZES)
    assert (block.kind, block.removable) == ("InvertedResidual", False)
    assert [node.kind for node in block.nodes if node.kind != "Relu"] == ["Conv", "Clip", "Conv", "Clip", "Conv"]


def test_a_gate_belongs_to_it() -> None:
    body = f"a = Conv (x, i)  b = Clip (a, zero, six)  {DEPTHWISE}  {GATE}  t = Add (x, e)"
    (block,) = found_in(body, **SIZES, m=(16, 16, 1, 1))
    assert block.kind == "InvertedResidual"
    assert "Sigmoid" in {node.kind for node in block.nodes}


def test_an_activated_projection_is_none() -> None:
    assert "InvertedResidual" not in {block.kind for block in found_in(f"{CHAIN}  t = Relu (e)", **SIZES)}


@pytest.mark.parametrize("tail", ["t = Identity (e)", "t = Add (x, e)"])
def test_without_expansion_only_the_kernel_changes(tail: str) -> None:
    depthwise = "c = Conv <group = 8, kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (x, k)"
    (block,) = found_in(f"{depthwise}  d = Relu (c)  e = Conv (d, o)  {tail}", k=(8, 1, 5, 5), o=(8, 8, 1, 1))
    assert (block.kind, set(block.handles)) == ("DepthwiseSeparable", {"kernel_size"})
    assert block.removable == (tail == "t = Add (x, e)")
