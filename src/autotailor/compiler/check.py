"""The last look at a compiled network: its tensors fit together, and its operators run.

ONNX's shape inference looks at few of the conditions that operators set (the channels of a convolution are none of
them), and what a static operator needs shows only when it is executed.
"""

from __future__ import annotations

import torch

from autotailor.compiler.library import reason
from autotailor.ir.errors import GraphError
from autotailor.ir.executor import GraphModule
from autotailor.ir.supernet import SuperNet


def check_network(net: SuperNet) -> None:
    """Compares every deduced shape with the file's, and runs the original network once.

    Raises:
        GraphError: a tensor does not fit the operators around it, or an operator cannot be executed.
    """
    for name, dimensions in net.propagation.dimensions.items():
        weight = net.graph.weights.get(name)
        shape = net.graph.shapes[name] if weight is None else weight.shape
        needed = tuple(dimension.meta for dimension in dimensions)
        if needed != shape:
            raise GraphError(
                f"graph {net.name}: tensor {name} of shape {list(shape)} does not fit the operators around it, which "
                f"need {list(needed)}; check that onnxruntime runs the file"
            )
    try:
        with torch.inference_mode():
            logits = GraphModule(net.graph).eval()(torch.zeros(net.input_shape))
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(
            f"graph {net.name}: it cannot be executed: {reason(error)}; check that onnxruntime runs the file"
        ) from error
    if tuple(logits.shape) != net.graph.shapes[net.graph.output]:
        raise GraphError(f"graph {net.name}: it returns {list(logits.shape)}, not what its operators say")
