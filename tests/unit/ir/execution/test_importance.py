"""Which channels a SubNet keeps first."""

import numpy as np
import pytest
import torch

import autotailor
import networks
from autotailor.ir.dimensions.dimension import Atom
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.importance import channel_orders
from onnx_text import HEAD
from text_graphs import graph_of


def test_sorting_puts_important_channels_first() -> None:
    network = networks.make("resnet")
    with torch.no_grad():
        network.stages[1].main[1].weight[[3, 7]] = 0.0
    net = autotailor.compile(network, networks.SPACES["resnet"], name="resnet", resolution=32)
    order = next(o for name, o in net.sort_channels().sorting.items() if o[-2:] == [3, 7])
    assert len(order) == 16


def test_importance_is_the_product_of_gains_and_of_what_readers_weigh() -> None:
    """Worked by hand: each summand over its mean, summands of one factor added, both factors multiplied."""
    gain, other = np.array([1.0, -4.0, 2.0], np.float32), np.array([2.0, 1.0, 3.0], np.float32)
    weighed = np.stack([other, -other]).reshape(2, 3, 1, 1)
    graph = graph_of(
        "a = Conv (x, k)  n = BatchNormalization (a, g, z, o, v)  b = Conv (n, l)  c = Conv (n, m)"
        f"  t = Concat <axis = 1> (b, c)  {HEAD}",
        k=(3, 3, 1, 1), g=gain, z=[0.0] * 3, o=[0.0] * 3, v=[1.0] * 3,
        l=weighed, m=np.ones((1, 3, 1, 1), np.float32), fc=(5, 3),
    )  # fmt: skip
    elastic = ElasticGraph.of(graph)
    atom = elastic.propagation.dimensions["a"][1]
    assert isinstance(atom, Atom)
    gains, readers = np.abs(gain) / np.abs(gain).mean(), other / other.mean() + np.ones(3)
    order = channel_orders(elastic, [atom])[atom]
    assert order.tolist() == np.argsort(-gains * readers, kind="stable").tolist() == [1, 2, 0]


@pytest.mark.parametrize("strong", [0, 2])
def test_channels_behind_a_concatenation_are_weighed_where_they_are_read(strong: int) -> None:
    reads = np.ones((1, 6, 1, 1), np.float32)
    reads[0, 3 + strong] = 9
    graph = graph_of(f"a = Conv (x, k)  b = Conv (x, l)  c = Concat <axis = 1> (a, b)  t = Conv (c, m)  {HEAD}",
                     k=(3, 3, 1, 1), l=(3, 3, 1, 1), m=reads, fc=(5, 1))  # fmt: skip
    elastic = ElasticGraph.of(graph)
    first, second = (elastic.propagation.dimensions[name][1] for name in "ab")
    assert isinstance(first, Atom)
    assert isinstance(second, Atom)
    orders = channel_orders(elastic, [first, second])
    assert orders[first].tolist() == [0, 1, 2]
    assert orders[second].tolist()[0] == strong
