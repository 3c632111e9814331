"""Attention from propagation alone: heads, value channels, tokens, and embeddings that follow the image."""

import autotailor


def test_nothing_is_static_and_every_kind_of_variable_is_there(transformer_net: autotailor.SuperNet) -> None:
    assert not transformer_net.static_parts
    kinds = {v.kind for v in transformer_net.space}
    assert kinds == {
        "resolution",
        "depth",
        "width",
        "heads",
        "v_scale",
        "expand_ratio",
    }


def test_shapes_follow_heads_values_and_resolution(transformer_net: autotailor.SuperNet) -> None:
    subnet = autotailor.SubNet.from_assignment(
        transformer_net.space, {"resolution": 24, "block1.heads": 2, "block1.v_scale": 1.5, "block1.expand_ratio": 2}
    )
    shapes = set(transformer_net.shapes(subnet).values())
    assert (1, 2, 10, 10) in shapes  # scores: 3 x 3 patches and the token
    assert (1, 2, 10, 12) in shapes  # context: 12 value channels
    assert (1, 10, 2 * (8 + 8 + 12)) in shapes  # the fused projection
    assert (1, 10, 48) in shapes
