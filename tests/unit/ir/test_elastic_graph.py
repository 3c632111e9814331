"""An elastic graph: what a SubNet keeps of it, against the network without the removed blocks."""

import numpy as np
import pytest
import torch
from torch import nn

import autotailor
import networks
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.errors import IllegalSubNetError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from onnx_text import HEAD
from text_graphs import graph_of


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_removed_blocks_are_read_around_as_if_they_had_never_been_there(removed: int) -> None:
    net = autotailor.compile(networks.make("resnet"), {"depth": {"stage2": [0, 1, 2]}}, resolution=32)
    elastic, subnet = net.elastic, autotailor.SubNet.from_assignment(net.space, {"stage2.depth": removed})
    kept = elastic.remainder(subnet)
    assert [block.name for block in elastic.removed(subnet)] == ["block4", "block5"][2 - removed :]
    assert set(kept.stands_for) == {block.output for block in elastic.removed(subnet)}
    assert set(kept.stands_for.values()) <= {elastic.blocks[4 - removed].output}
    network = networks.make("resnet")
    network.stages = nn.Sequential(*list(network.stages)[: 5 - removed])
    graph = net.graph
    alone = Graph("alone", kept.nodes, graph.input, (kept.tensor(graph.output),), graph.shapes, graph.weights)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(GraphModule(alone).eval()(x), network(x), rtol=1e-4, atol=1e-4)


def test_every_node_of_a_block_has_the_gate_of_the_block(resnet_net: autotailor.SuperNet) -> None:
    elastic = resnet_net.elastic
    gated = {node.name: block.name for block in elastic.blocks for node in block.nodes if block.name in elastic.gates}
    assert gated
    assert elastic.node_gates.keys() == gated.keys()
    assert all(elastic.node_gates[node] is elastic.gates[block] for node, block in gated.items())


def test_a_graph_without_variables_has_one_subnet() -> None:
    elastic = ElasticGraph.of(graph_of(f"t = Conv (x, k)  {HEAD}", k=(4, 3, 1, 1), fc=(5, 4)))
    only = autotailor.SubNet(elastic.space, ())
    assert len(elastic.space) == 0
    assert elastic.remainder(only).nodes == elastic.graph.nodes
    shapes = elastic.shapes(["x", "", "t", "fc"], elastic.sizes(only))
    assert shapes == {"x": (1, 3, 8, 8), "t": (1, 4, 8, 8), "fc": (5, 4)}


def test_other_weights_leave_what_is_known_of_the_graph(resnet_net: autotailor.SuperNet) -> None:
    name, weight = next(iter(resnet_net.graph.weights.items()))
    other = resnet_net.elastic.with_weights({name: np.zeros_like(weight)})
    assert weight.any()
    assert not other.graph.weights[name].any()
    assert other.propagation is resnet_net.elastic.propagation
    assert other.blocks is resnet_net.elastic.blocks


def test_a_map_that_vanishes_is_refused_by_name() -> None:
    elastic = ElasticGraph.of(graph_of(f"t = Conv (x, k)  {HEAD}", k=(4, 3, 5, 5), fc=(5, 4)))
    with pytest.raises(IllegalSubNetError, match="t: nothing is left of a dimension of 4; it became 0"):
        elastic.shapes(["t"], lambda atom: 4 if atom.is_spatial else atom.meta)
