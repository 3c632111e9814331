"""Pieces of axes between two layers whose widths change, against onnxruntime."""

import pytest

from operator_cases import assert_all_forms_agree, case

CASES = {
    "halves": case("l, r = Split <axis = 1> (t, sizes)  y = Concat <axis = 1> (r, l)", sizes=[6, 6]),
    "uneven pieces": case("l, r = Split <axis = -3> (t, sizes)  p = Sigmoid (r)  y = Concat <axis = 1> (l, p)",
                          sizes=[4, 8]),
    "halves added": case("l, r = Split <axis = 1> (t, sizes)  y = Add (l, r)", sizes=[6, 6]),
    "first channels": case("y = Slice (t, starts, ends, axes)", starts=[0], ends=[5], axes=[1]),
    "last channels": case("y = Slice (t, starts, ends, axes)", starts=[-5], ends=[2**63 - 1], axes=[1]),
    "channels in the middle": case("y = Slice (t, starts, ends, axes)", starts=[2], ends=[9], axes=[-3]),
    "every second pixel": case(
        "y = Slice (t, starts, ends, axes, steps)", starts=[0, 0], ends=[2**31, 2**31], axes=[2, 3], steps=[2, 2]
    ),
    "channels backwards": case(
        "y = Slice (t, starts, ends, axes, steps)", starts=[-1], ends=[-(2**31)], axes=[1], steps=[-1],
        shrinks=False,
    ),
    "one channel": case("g = Gather <axis = 1> (t, index)  y = Unsqueeze (g, axis)", index=3, axis=[1]),
    "one row of pixels": case("y = Gather <axis = 2> (t, index)", index=0, resizes=False),
    "some channels": case("y = Gather <axis = 1> (t, indices)", indices=[7, 0, -1, 3], shrinks=False),
    "a matrix of indices": case(
        "g = Gather <axis = 1> (t, indices)  y = Reshape (g, flat)", indices=[[7, 0], [-1, 3]], flat=[0, -1],
        static="Gather", resizes=False, shrinks=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    assert_all_forms_agree(CASES[name])
