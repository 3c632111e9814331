"""Propagation: which sizes are one dimension, which stay as they are, and why."""

import numpy as np
import numpy.typing as npt
import pytest

from autotailor.ir.dimensions.dimension import RESOLUTION, Atom, Constant, Dimension, Product, Sum
from autotailor.ir.errors import GraphError
from autotailor.ir.propagation import Propagation, propagate
from onnx_text import HEAD
from text_graphs import graph_of


def propagated(body: str, *, side: int = 8, **weights: npt.ArrayLike) -> Propagation:
    """Dimensions of a network from ``x`` to ``y``; a weight that is a tuple is the shape of a random one."""
    return propagate(graph_of(body, shape=(1, 3, side, side), **weights))


def channels(found: Propagation, name: str) -> Dimension:
    return found.dimensions[name][1]


def test_both_sides_of_a_sum_change_together_and_the_next_layer_reads_them() -> None:
    found = propagated(f"a = Conv (x, k)  b = Conv (x, l)  t = Add (a, b)  {HEAD}",
                       k=(4, 3, 1, 1), l=(4, 3, 1, 1), fc=(5, 4))  # fmt: skip
    width = channels(found, "a")
    assert isinstance(width, Atom)
    assert channels(found, "b") == channels(found, "t") == width
    assert found.dimensions["k"][0] == found.dimensions["l"][0] == found.dimensions["fc"][1] == width
    assert found.dimensions["y"][1] == found.dimensions["fc"][0] == Constant(5)


def test_widths_of_layers_in_a_row_are_apart() -> None:
    found = propagated(f"a = Conv (x, k)  t = Conv (a, l)  {HEAD}", k=(4, 3, 1, 1), l=(4, 4, 1, 1), fc=(5, 4))
    assert channels(found, "a") != channels(found, "t")
    assert found.dimensions["l"][:2] == (channels(found, "t"), channels(found, "a"))
    assert found.atoms("l") == (channels(found, "t"), channels(found, "a"))


def test_a_concatenation_is_the_sum_of_its_parts() -> None:
    found = propagated(f"a = Conv (x, k)  b = Conv (x, l)  t = Concat <axis = 1> (a, b, a)  {HEAD}",
                       k=(4, 3, 1, 1), l=(2, 3, 1, 1), fc=(5, 10))  # fmt: skip
    assert channels(found, "t") == Sum((channels(found, "a"), channels(found, "b"), channels(found, "a")))
    assert found.dimensions["fc"][1] == channels(found, "t")


def test_groups_come_and_go_with_the_channels_that_they_hold() -> None:
    found = propagated(f"a = Conv (x, k)  t = Conv <group = 3> (a, l)  {HEAD}",
                       k=(6, 3, 1, 1), l=(9, 2, 1, 1), fc=(5, 9))  # fmt: skip
    before, behind = channels(found, "a"), channels(found, "t")
    assert isinstance(before, Product)
    assert isinstance(behind, Product)
    (groups,) = before.atoms()
    assert groups.meta == 3
    assert (before, behind) == (Product((groups, Constant(2))), Product((groups, Constant(3))))


def test_a_node_without_a_rule_keeps_its_shape_and_says_why() -> None:
    found = propagated(f"a = Conv (x, k)  b = Atan (a)  t = Conv (b, l)  {HEAD}",
                       k=(4, 3, 1, 1), l=(6, 4, 1, 1), fc=(5, 6))  # fmt: skip
    (part,) = found.static
    assert (part.kind, part.reason) == ("Atan", "no rule for Atan")
    assert [axis.meta for axis in found.dimensions["b"]] == [1, 4, 8, 8]
    assert found.atoms("a") == found.atoms("b") == found.atoms("x") == ()
    assert isinstance(channels(found, "t"), Atom)


def test_the_weight_of_a_static_node_keeps_its_shape() -> None:
    found = propagated(
        "c = Conv (x, k)  a = GlobalAveragePool (c)  r = Flatten (a)  v = MatMul (r, w)  u = Unsqueeze (v, end)"
        "  y = Gemm <transB = 1> (u, fc)",
        k=(4, 3, 1, 1), w=(4,), end=[1], fc=(5, 1),
    )  # fmt: skip
    assert [part.kind for part in found.static] == ["MatMul"]
    assert found.dimensions["w"] == (Constant(4),)
    assert channels(found, "c") == Constant(4)


@pytest.mark.parametrize(
    ("body", "pinned"),
    [
        (f"t = Conv (x, k)  {HEAD}", False),
        (f"c = Conv (x, k)  t = Add (c, image)  {HEAD}", False),
        ("c = Conv (x, k)  f = Flatten (c)  y = Gemm <transB = 1> (f, large)", True),
        (f"c = Conv (x, k)  t = LayerNormalization <axis = 1> (c, image)  {HEAD}", True),
    ],
    ids=["pooled", "an image is added", "flattened", "an image is the gain"],
)
def test_the_resolution_changes_unless_a_weight_has_its_axes_and_cannot_be_resampled(body: str, pinned: bool) -> None:
    weights = {"k": (4, 3, 1, 1), "image": (4, 8, 8), "fc": (5, 4), "large": (5, 256)}
    found = propagated(body, **{name: shape for name, shape in weights.items() if name in body.replace(",", " ")})
    assert (RESOLUTION not in {atom.name for atom in found.atoms("x")}) == pinned


@pytest.mark.parametrize("hidden", [-np.inf, -1e9, np.finfo(np.float32).min])
def test_a_mask_is_not_resampled_and_says_so(hidden: float) -> None:
    mask = np.where(np.eye(8), 0.0, hidden).astype(np.float32)
    body = f"c = Conv (x, k)  a = Add (c, mask)  t = Softmax (a)  {HEAD}"
    found = propagated(body, k=(4, 3, 1, 1), mask=mask, fc=(5, 4))
    assert RESOLUTION not in {atom.name for atom in found.atoms("x")}
    assert isinstance(channels(found, "c"), Atom)
    (part,) = found.static
    assert (part.kind, part.reason[:34]) == ("Add", "mask holds infinite or huge values")
    assert "the resolution is static" in part.reason


def test_resolutions_are_multiples_of_what_maps_are_divided_by() -> None:
    body = (
        "d = SpaceToDepth <blocksize = 2> (x)  c = Conv (d, k)  e = SpaceToDepth <blocksize = 3> (c)  t = Conv (e, l)"
    )
    found = propagated(f"{body}  {HEAD}", side=24, k=(4, 12, 1, 1), l=(6, 36, 1, 1), fc=(5, 6))
    assert found.resolution_step == 6
    assert propagated(f"t = Conv (x, k)  {HEAD}", k=(4, 3, 1, 1), fc=(5, 4)).resolution_step == 1


def test_operators_state_the_least_size_that_they_need() -> None:
    found = propagated(f'a = Pad <mode = "reflect"> (x, pads)  t = Conv (a, k)  {HEAD}',
                       pads=[0, 0, 3, 2, 0, 0, 1, 2], k=(4, 3, 1, 1), fc=(5, 4))  # fmt: skip
    assert [(need.least, str(need.dimension.meta)) for need in found.needs] == [(4, "8"), (3, "8")]
    assert all("repeats" in need.reason for need in found.needs)


def test_the_sides_of_an_oblong_image_stay() -> None:
    found = propagate(graph_of(f"t = Conv (x, k)  {HEAD}", shape=(1, 3, 8, 6), k=(4, 3, 1, 1), fc=(5, 4)))
    assert found.dimensions["x"][2:] == (Constant(8), Constant(6))


def test_a_weight_of_another_rank_than_its_operator_reads_is_named() -> None:
    graph = graph_of(f"c = Conv (x, k)  t = InstanceNormalization (c, g, s)  {HEAD}",
                     k=(4, 3, 1, 1), g=(4,), s=(4,), fc=(5, 4))  # fmt: skip
    broken = graph.with_weights({"g": np.ones((4, 1), dtype=np.float32)})
    with pytest.raises(GraphError, match=r"g of shape \[4, 1\] does not fit its operator, which reads 1 axes"):
        propagate(broken)
