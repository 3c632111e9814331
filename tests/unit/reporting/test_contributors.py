"""Where SubNets spend their time."""

import numpy as np
import pytest

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.places import FusedGroup, Place
from autotailor.ir.graph import Node
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Space, Variable
from autotailor.reporting import contributors
from autotailor.reporting.contributors import describe


def convolution(channels: int, kernel: int = 1, group: int = 1) -> OperatorFeature:
    weights = ((channels, channels // group, kernel, kernel),)
    shape = (1, channels, 8, 8)
    return OperatorFeature("Conv", (shape,), (shape,), weights, (("group", group),))


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (convolution(8, 1), "Conv 1×1"),
        (convolution(8, 3), "Conv 3×3"),
        (convolution(8, 5, 8), "Depthwise 5×5"),
        (convolution(8, 3, 2), "Grouped 3×3"),
        (OperatorFeature("Gemm", ((1, 8),), ((1, 4),), ((4, 8),)), "Gemm"),
    ],
)
def test_describe(feature: OperatorFeature, text: str) -> None:
    assert describe(feature) == text


def convolution_named(name: str) -> FusedGroup:
    return FusedGroup(Node(name, "Conv", ("x", "w"), ("y",)), (), ())


def test_each_place_once_and_only_while_its_gate_is_open() -> None:
    depth = Variable("stage1.depth", "depth", (0, 1), 0, least=1)
    width = Variable("stage1.width", "width", (1.0, 0.5), 0)
    space = Space((depth, width))
    gate = Gate((depth.name,), (True, False))
    by_width = (convolution(8), convolution(4))
    places = [
        Place(convolution_named("conv1"), ("stage1.width",), by_width, np.array([0, 1]), None),
        Place(convolution_named("conv2"), (), (convolution(8, 3),), np.array(0), gate),
    ]
    latencies = {by_width[0].id: 2.0, by_width[1].id: 1.0, convolution(8, 3).id: 5.0}
    small = SubNet.from_assignment(space, {"stage1.depth": 1, "stage1.width": 0.5})
    table = contributors(places, latencies, {"largest": largest(space), "budget_01": small})
    assert table[["name", "place", "kind", "latency_ms"]].to_numpy().tolist() == [
        ["largest", "conv1", "Conv 1×1", 2.0],
        ["largest", "conv2", "Conv 3×3", 5.0],
        ["budget_01", "conv1", "Conv 1×1", 1.0],
    ]
    assert set(table["subnet"]) == {largest(space).id, small.id}
