"""Layer-wise decay of the learning rate: the deeper a weight lies in the graph, the faster it learns.

As in BEiT (Bao et al., 2022), weights of layer i of n learn with the rate lr decay^(n - i). A layer is one block, or
one weighted operator outside of the blocks; what follows before the next layer, such as a normalisation, belongs to the
layer. The number of a layer is the longest path from the input, in layers.
"""

from autotailor.ir.blocks.block import WEIGHTED
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.graph import Node
from autotailor.ir.supernet import SuperNet


def weight_depths(net: SuperNet) -> dict[str, int]:
    """The layer of each weight, from 0 for what stands before the first layer, by the graph's names of weights."""
    units = {node.name: block.name for block in net.blocks for node in block.nodes}
    producers, depths = net.graph.producers, dict[str, int]()
    depth_of: dict[str, int] = {}

    def unit(node: Node) -> str | None:
        return units.get(node.name, node.name if node.kind in WEIGHTED else None)

    for node in net.graph.nodes:
        depth = int(unit(node) is not None)
        for name in net.graph.activations(node):
            if (before := producers.get(name)) is not None:
                begins = unit(node) is not None and unit(node) != unit(before)
                depth = max(depth, depths[before.name] + begins)
        depths[node.name] = depth
        for name in node.inputs:
            if name in net.graph.weights:
                depth_of[name] = min(depth_of.get(name, depth), depth)
    return depth_of


def learning_rate_scales(net: SuperNet, module: ElasticModule, decay: float) -> dict[str, float]:
    """Factor of the learning rate of each parameter of a SuperNet's module; empty where the decay is 1."""
    if decay == 1:
        return {}
    depths = weight_depths(net)
    last = max(depths.values(), default=0)
    return {module.weight_names[name]: decay ** (last - depth) for name, depth in depths.items()}
