"""Branch: paths side by side that a concatenation joins."""

from trunk_blocks import found_in

LEFT = "a = Conv (x, i)  b = Relu (a)  c = Conv <pads = [1, 1, 1, 1]> (b, k)"
SIZES = {"i": (6, 8, 1, 1), "k": (4, 6, 3, 3)}


def test_paths_with_layers_are_one_block_whose_ratio_scales_the_inner_width() -> None:
    (block,) = found_in(f"{LEFT}  d = Conv (x, p)  t = Concat <axis = 1> (c, d)", **SIZES, p=(4, 8, 1, 1))
    assert (block.kind, block.removable) == ("Branch", False)
    ratio = block.handles["expand_ratio"]
    assert (ratio.relative_to, sorted(atom.meta for atom in ratio.atoms)) == ("out", [6])


def test_sums_inside_are_left_to_the_templates_of_sums() -> None:
    sums = f"{LEFT}  e = Conv (c, o)  s = Add (e, x)  w = Conv (s, q)"
    sizes = {**SIZES, "o": (8, 4, 1, 1), "p": (4, 8, 1, 1), "q": (4, 8, 1, 1)}
    inner, outer = found_in(f"{sums}  d = Conv (x, p)  t = Concat <axis = 1> (w, d)", **sizes)
    assert (inner.kind, [node.kind for node in inner.nodes]) == ("Bottleneck", ["Conv", "Relu", "Conv", "Conv", "Add"])
    assert (outer.kind, [node.kind for node in outer.nodes]) == ("Branch", ["Conv"])
