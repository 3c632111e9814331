"""Variables of a request, and the sizes that they give."""

import pytest

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from branched_networks import NETWORKS, SIDE


def test_inner_widths_keep_their_proportions() -> None:
    net = autotailor.compile(NETWORKS["inception"](), {"divisor": 4, "blocks": {"Branch": {"expand_ratio": [0.1875]}}},
                             name="inception", resolution=SIDE)  # fmt: skip
    half = net.slice(net.smallest())
    widths = [half.weights[n.inputs[1]].shape[0] for n in half.nodes if n.kind == "Conv"]
    assert widths[1:6] == [16, 12, 32, 4, 16]


def test_more_heads_than_the_weights_hold_are_refused() -> None:
    space = {"blocks": {"TransformerBlock": {"heads": [4, 8]}}}
    with pytest.raises(SpaceError, match="holds weights for heads 4 at most"):
        autotailor.compile(networks.make("transformer"), space, resolution=32)


def test_choices_by_stage() -> None:
    space = {"depth": {"stage1": [0, 1], "*": [0, 1, 2]}, "width": {"stage2": [0.5]}, "divisor": 4}
    net = autotailor.compile(networks.make("resnet"), space, resolution=32)
    assert {v.name: v.choices for v in net.space} == {
        "stage1.depth": (0, 1), "stage2.depth": (0, 1, 2), "stage2.width": (0.5, 1.0),
    }  # fmt: skip


def test_one_scale_halves_all_channels_together() -> None:
    net = autotailor.compile(networks.make("resnet"), {"divisor": 4, "scale": [0.5]}, resolution=32)
    assert [variable.name for variable in net.space] == ["width"]
    whole, half = (net.slice(subnet) for subnet in (net.largest(), net.smallest()))
    widths = [[g.weights[n.inputs[1]].shape[0] for n in g.nodes if n.kind == "Conv"] for g in (whole, half)]
    assert widths[1] == [width // 2 for width in widths[0]]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"depth": {"stage1": [0, 2]}}, "of stage1 at most 1 of 2 blocks can be removed"),
        ({"depth": {"stage3": [0, 1]}}, r"depth: unknown \['stage3'\]; the network has \['stage1', 'stage2'\]"),
        (
            {"width": {"tail": [0.5]}},
            r"width: unknown \['tail'\]; the network has \['stem', 'stage1', 'stage2', 'head'\]",
        ),
    ],
)
def test_choices_for_a_named_stage_must_be_legal(space: dict[str, object], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"widths": [0.5]}, "unknown keys"),
        ({"width": [1.5]}, "no more than 1"),
        ({"resolution": [64]}, "between 1 and the network's 32"),
        ({"depth": [-1]}, "count removed blocks"),
        ({"blocks": {"Bottleneck": {"expand_ratio": [2.0]}}}, "holds weights for expand ratio 0.5 at most"),
        ({"blocks": {"Transformer": {}}}, "no block is named or of kind 'Transformer'"),
        ({"blocks": {"Bottleneck": {"heads": [2]}}}, "has no variable"),
    ],
)
def test_spaces_that_cannot_be_are_refused(space: dict[str, object], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


@pytest.mark.parametrize(
    ("choices", "message"),
    [([3, 9], "kernel size 7 at most"), ([4], r"can have kernel size \[3, 5, 7\]"), ([1], r"\[3, 5, 7\]")],
)
def test_kernels_that_cannot_be_are_refused(choices: list[int], message: str) -> None:
    space = {"blocks": {"block3": {"kernel_size": choices}}}
    with pytest.raises(SpaceError, match=message):
        autotailor.compile(networks.make("mobilenet"), space, resolution=32)


def test_a_space_is_proposed() -> None:
    net = autotailor.compile(networks.make("mobilenet"), resolution=32)
    assert net.space["block1.kernel_size"].choices == (3, 5)
    assert net.space["block3.kernel_size"].choices == (3, 5, 7)
    assert len(net.space["block2.expand_ratio"].choices) == 3


def test_choices_that_rounding_makes_equal_are_merged() -> None:
    net = autotailor.compile(networks.make("resnet"), {"divisor": 8, "width": [0.5, 0.52, 1.0]}, resolution=32)
    assert net.space["stem.width"].choices == (0.52, 1.0) or net.space["stem.width"].choices == (0.5, 1.0)
    assert any(name == "stem.width" for name, _, _ in net.space.merged)


def test_skipped_variables_are_left_out() -> None:
    space = {**networks.SPACES["resnet"], "skip": ["stage1.*", "stem.width"]}
    names = [v.name for v in autotailor.compile(networks.make("resnet"), space, resolution=32).space]
    assert "stem.width" not in names
    assert not any(name.startswith("stage1") for name in names)


def test_a_skipped_name_that_the_network_does_not_have_is_refused() -> None:
    space = {**networks.SPACES["resnet"], "skip": ["head.*", "stage9.*"]}
    with pytest.raises(SpaceError, match=r"space\.skip: 'stage9\.\*' matches no variable .*'stem\.width'.*inspect"):
        autotailor.compile(networks.make("resnet"), space, resolution=32)


def test_variables_know_their_owner(any_net: autotailor.SuperNet) -> None:
    owners = {"", "stem", "head", *(s.name for s in any_net.stages), *(b.name for b in any_net.blocks)}
    for variable in any_net.space:
        assert variable.owner in owners
        assert variable.name == f"{variable.owner}.{variable.kind}".lstrip(".")
        assert any_net.space.find(variable.owner, variable.kind) is variable
