"""BasicResidual: what is one, and what is none."""

import pytest

from trunk_blocks import found_in

TWO = "a = Conv <pads = [1, 1, 1, 1]> (x, i)  b = Relu (a)  c = Conv <pads = [1, 1, 1, 1]> (b, o)"
SIZES = {"i": (6, 8, 3, 3), "o": (8, 6, 3, 3)}


def test_two_square_convolutions_with_a_sum() -> None:
    (block,) = found_in(f"{TWO}  s = Add (c, x)  t = Relu (s)", **SIZES)
    assert (block.kind, block.removable) == ("BasicResidual", True)
    ratio = block.handles["expand_ratio"]
    assert (ratio.relative_to, [atom.meta for atom in ratio.atoms]) == ("out", [6])


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("a = Conv (x, i)  c = Conv <pads = [1, 1, 1, 1]> (a, o)  t = Add (c, x)", {**SIZES, "i": (6, 8, 1, 1)}),
        ("c = Conv <pads = [1, 1, 1, 1]> (x, o)  t = Add (c, x)", {"o": (8, 8, 3, 3)}),
    ],
    ids=["one is pointwise", "a single one"],
)
def test_others_are_none(body: str, sizes: dict[str, tuple[int, ...]]) -> None:
    (block,) = found_in(body, **sizes)
    assert block.kind == "Residual"
