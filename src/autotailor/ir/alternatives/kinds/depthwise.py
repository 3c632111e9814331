"""A dense convolution as a depthwise one and a map of single pixels behind it.

The kernel of each channel is the first right singular vector of all kernels that read the channel. The map behind is
solved by least squares on what the depthwise convolution says on pictures, with the dense one's answers as targets.
"""

from collections.abc import Sequence

import numpy as np

from autotailor.ir.alternatives.alternative import (
    Alternative,
    Branch,
    Responses,
    bias_of,
    dense,
    least_squares,
    name_of,
    read_switch,
    register_alternative,
)
from autotailor.ir.alternatives.kinds.low_rank import POINT
from autotailor.ir.graph import Graph, Node, Weights


@register_alternative
class Depthwise(Alternative):
    """``depthwise: true``: a convolution of each channel, then a map of all channels."""

    kind = "depthwise"
    fits_features = True

    def choices(self, value: object) -> tuple[str, ...]:
        return read_switch(self.kind, value)

    def fits(self, graph: Graph, node: Node) -> bool:
        weight = dense(graph, node)
        return weight is not None and weight.ndim == 4 and weight[0, 0].size > 1 and min(weight.shape[:2]) > 1

    def build(self, graph: Graph, node: Node, choices: Sequence[str]) -> Branch | None:
        weight = dense(graph, node)
        assert weight is not None
        outputs, inputs = weight.shape[:2]
        spatial, pixels = (name_of(node, self.kind, part) for part in ("spatial", "pixels"))
        inner, outer = node.outputs[0] + f":{self.kind}.inner", node.outputs[0] + f":{self.kind}"
        first = Node(
            spatial,
            "Conv",
            (node.inputs[0], f"{spatial}.weight"),
            (inner,),
            node.with_attributes(group=inputs).attributes,
        )
        second = Node(pixels, "Conv", (inner, f"{pixels}.weight", f"{pixels}.bias"), (outer,), POINT)
        kernels = weight.astype(np.float64).transpose(1, 0, 2, 3).reshape(inputs, outputs, -1)
        left, values, right = np.linalg.svd(kernels, full_matrices=False)
        scale = np.sqrt(np.maximum(values[:, :1], np.finfo(np.float32).tiny))
        bias = bias_of(graph, node, outputs)
        arrays = {
            f"{spatial}.weight": (scale * right[:, 0]).reshape(inputs, 1, *weight.shape[2:]),
            f"{pixels}.weight": (left[:, :, 0] * scale).T.reshape(outputs, inputs, 1, 1),
            f"{pixels}.bias": np.zeros(outputs) if bias is None else bias,
        }
        weights = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
        shape = graph.shapes[node.outputs[0]]
        return Branch((first, second), outer, weights, {inner: (shape[0], inputs, *shape[2:]), outer: shape})

    def solve(self, graph: Graph, node: Node, branch: Sequence[Node], responses: Responses) -> Weights:
        solved, bias = least_squares(responses)
        return {branch[-1].inputs[1]: solved[:, :, None, None], branch[-1].inputs[2]: bias}
