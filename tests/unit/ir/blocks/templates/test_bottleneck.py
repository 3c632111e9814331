"""Bottleneck: what is one, and what is none."""

import pytest

from trunk_blocks import found_in

MAIN = "a = Conv (x, i)  b = Relu (a)  c = Conv <pads = [1, 1, 1, 1]%s> (b, k)  d = Relu (c)  e = Conv (d, o)"
SIZES = {"i": (6, 8, 1, 1), "k": (6, 6, 3, 3), "o": (8, 6, 1, 1)}


def test_pointwise_square_pointwise_with_a_sum_and_the_activation_behind_it() -> None:
    (block,) = found_in(f"{MAIN % ''}  s = Add (e, x)  t = Relu (s)", **SIZES)
    assert (block.kind, block.removable) == ("Bottleneck", True)
    assert [node.kind for node in block.nodes] == ["Conv", "Relu", "Conv", "Relu", "Conv", "Add", "Relu"]
    ratio = block.handles["expand_ratio"]
    assert (ratio.relative_to, [atom.meta for atom in ratio.atoms]) == ("out", [6, 6])


def test_a_shortcut_that_projects_cannot_be_removed() -> None:
    (block,) = found_in(f"{MAIN % ''}  p = Conv (x, j)  t = Add (p, e)", **SIZES, j=(8, 8, 1, 1))
    assert (block.kind, block.removable) == ("Bottleneck", False)


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        (f"{MAIN % ', group = 6'}  t = Add (e, x)", {**SIZES, "k": (6, 1, 3, 3)}),
        (f"{MAIN % ''}  t = Mul (e, x)", SIZES),
        ("a = Conv (x, o)  b = Conv (a, o)  c = Conv (b, o)  t = Add (c, x)", {"o": (8, 8, 1, 1)}),
    ],
    ids=["depthwise", "a product", "three pointwise"],
)
def test_others_are_none(body: str, sizes: dict[str, tuple[int, ...]]) -> None:
    assert "Bottleneck" not in {block.kind for block in found_in(body, **sizes)}
