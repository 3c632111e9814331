"""SubNets as graphs of their own."""

import numpy as np

import autotailor
import networks
from autotailor.ir.space.variable import Modification


def test_a_smaller_kernel_is_the_centre_of_the_larger() -> None:
    net = autotailor.compile(networks.make("mobilenet"), networks.SPACES["mobilenet"], resolution=32)
    kernels = {v.name: v.choices for v in net.space if v.kind == "kernel_size"}
    assert kernels == {"block1.kernel_size": (3, 5), "block3.kernel_size": (3, 5, 7)}
    sliced = net.slice(net.largest().transform(Modification("block3.kernel_size", 5)))
    node = next(
        n for n in sliced.nodes if n.kind == "Conv" and n.get("kernel_shape") == (5, 5) and n.get("group") == 96
    )
    assert node.get("pads") == (2, 2, 2, 2)
    assert np.array_equal(sliced.weights[node.inputs[1]], net.graph.weights[node.inputs[1]][..., 1:6, 1:6])
