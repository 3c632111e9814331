"""Merged blocks: where they are possible, how many SubNets they make, and which of them depth allows."""

import itertools

import pytest
from tests import networks
from torch import nn

import autotailor
from autotailor.ir.alternatives.merging import find_merges
from autotailor.ir.alternatives.rebuilding import copied_again
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Modification

NOT_BOTH = "none of its blocks has the shapes of both ends"
NO_MAP = "the block that fits its ends ends in no map that can be solved"


class Chain(nn.Module):
    """Bottlenecks in stages as ResNet50 has them, with few channels."""

    def __init__(self, stages: tuple[int, ...]) -> None:
        super().__init__()
        layers, width = list[nn.Module](networks.conv_bn(3, 4)), 4
        for number, count in enumerate(stages):
            for place in range(count):
                outputs = 4 * (number + 2)
                layers.append(networks.Bottleneck(width, 4, outputs, 2 if place == 0 and number else 1))
                width = outputs
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(width, 3)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.head(self.layers(x).mean((2, 3)))


def merging(network: nn.Module, **space: object) -> autotailor.SuperNet:
    asked = {"alternatives": {"merged": [1, 2]}, **space}
    return autotailor.compile(network.eval(), asked, resolution=32)


@pytest.mark.parametrize(
    ("stages", "alternatives", "count"),
    [
        ((3, 4, 6, 3), {"merged": [1, 2]}, 10_609),
        ((3,), {"merged": [1, 2]}, 4),
        ((3, 2), {"merged": [2, 1], "depthwise": True}, 84),
        ((3, 2), {"merged": [1]}, 8),
    ],
)
def test_subnets_are_counted_as_chains_of_merged_blocks(
    stages: tuple[int, ...], alternatives: dict[str, object], count: int
) -> None:
    """AdaptiveNet, section 7.2: f(n) = w f(n - 1) + f(n - 2) + f(n - 3) with w ways to keep a block; ResNet50: 16."""
    net = merging(Chain(stages), alternatives=alternatives)
    assert net.space.num_distinct == count
    if count < 10:
        rows = itertools.product(*(range(len(v.choices)) for v in net.space))
        subnets = {SubNet(net.space, row) for row in rows}
        assert len(subnets) == len({tuple(node.name for node in net.slice(each).nodes) for each in subnets}) == count


@pytest.mark.parametrize(
    ("network", "spared", "expected"),
    [
        ("resnet", 1, ["block1", "block3", "block3", "block4"]),
        ("resnet", 2, [NOT_BOTH, "block3", "block3"]),
        ("mobilenet", 1, ["block1", "block2"]),
        ("transformer", 2, ["block1"]),
        ("grouped", 1, [NO_MAP]),
        ("shuffled", 1, ["its blocks are not all that follows one another"] * 2),
    ],
)
def test_a_range_is_merged_into_its_first_block_with_the_shapes_of_its_ends(
    network: str, spared: int, expected: list[str]
) -> None:
    net = autotailor.compile(networks.make(network), {}, resolution=32)
    found = [find_merges(net.graph, net.propagation, net.blocks, first, spared) for first in range(len(net.blocks))]
    assert [m.reason or m.model.name for m in found if m is not None] == expected  # type: ignore[union-attr]


def test_a_block_that_ends_in_an_unknown_way_is_not_merged() -> None:
    class Scaled(networks.Bottleneck):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return (self.main(x) + x) * (self.main(x) + x).sigmoid()

    class Three(Chain):
        def __init__(self) -> None:
            super().__init__((1,))
            self.layers = nn.Sequential(*networks.conv_bn(3, 8), *(Scaled(8, 4, 8) for _ in range(2)))

    net = autotailor.compile(Three().eval(), {}, resolution=32)
    merge = find_merges(net.graph, net.propagation, net.blocks, 0, 1)
    assert merge is None or merge.model is None


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        ({"stage1": [0], "stage2": [0]}, {"block1": [1], "block2": [1, 2], "block3": [1, 2], "block4": [1]}),
        ({"stage1": [0, 1], "stage2": [0, 1]}, {"block2": [1, 2], "block3": [1]}),
        ({"stage1": [0], "stage2": [0, 2]}, {"block1": [1], "block2": [1], "block4": [1]}),
        ({"stage1": [0], "stage2": [0, 1, 2]}, {"block1": [1], "block2": [1]}),
    ],
)
def test_no_merged_block_stands_in_for_one_that_depth_removes_without_the_first(
    depth: dict[str, list[int]], expected: dict[str, list[int]]
) -> None:
    net = merging(networks.make("resnet"), depth=depth)
    found = {v.owner: [int(c[-1]) for c in v.choices[1:]] for v in net.space if v.kind == OPERATOR}
    assert found == expected


def test_what_a_merged_block_leaves_out_says_nothing() -> None:
    net = merging(networks.make("resnet"), blocks=networks.SPACES["resnet"]["blocks"])
    one = net.largest().transform(Modification("block3.operator", "merged:2"))
    for name in ("block3.expand_ratio", "block4.expand_ratio", "block5.expand_ratio"):
        assert one.transform(Modification(name, 0.25)) == one
    assert one.transform(Modification("block4.operator", "merged:1")) == one
    assert one.transform(Modification("block2.expand_ratio", 0.25)) != one
    macs, parameters = (
        metric.predict([one.to_array(), net.largest().to_array()]) for metric in (net.macs(), net.parameters())
    )
    assert macs[0] < macs[1]
    assert parameters[0] < parameters[1]


def test_copies_take_on_what_their_blocks_have_become() -> None:
    net = merging(networks.make("resnet"))
    name = next(n for n in net.graph.weights if n.endswith(":block1.merged.1"))
    source = name.removesuffix(":block1.merged.1")
    changed = net.with_weights({source: net.graph.weights[source] + 1.0})
    assert (copied_again(changed.graph)[name] == net.graph.weights[source] + 1.0).all()
    assert set(copied_again(net.graph)) == {n for n in net.graph.weights if ".merged." in n}
