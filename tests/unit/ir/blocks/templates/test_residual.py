"""Residual: any other sum."""

from trunk_blocks import found_in

ONE = "c = Conv <pads = [1, 1, 1, 1]> (x, o)"


def test_a_sum_with_one_layer_is_removable_where_the_other_path_has_none() -> None:
    (block,) = found_in(f"{ONE}  t = Add (c, x)", o=(8, 8, 3, 3))
    assert (block.kind, block.removable) == ("Residual", True)
    (block,) = found_in(f"{ONE}  d = Conv (x, p)  t = Add (c, d)", o=(8, 8, 3, 3), p=(8, 8, 1, 1))
    assert (block.kind, block.removable) == ("Residual", False)


def test_a_sum_without_a_layer_is_none() -> None:
    assert "Residual" not in {block.kind for block in found_in("c = Relu (x)  t = Add (c, x)")}
