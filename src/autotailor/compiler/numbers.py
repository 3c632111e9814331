"""Compares every operator of a compiled network with ONNX Runtime, before anything is trained with it.

ONNX Runtime's optimisation joins operators, and some of its joins compute something else. Exports run with it, so that
the whole network is compared with optimisation as well.

An operator rule that computes other numbers than ONNX asks for would train a network that no export can be: the first
comparison of an export with its SuperNet would be after the training.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
import torch

from autotailor.ir.errors import GraphError, first_line
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.graph import INPUT, Graph, Node
from autotailor.ir.operators.rule import Tensor
from autotailor.ir.supernet import SuperNet

TOLERANCE = 1e-3
"""Largest difference of an operator's result, relative to its largest number. Rounding makes some 1e-6."""

Values = Mapping[str, npt.NDArray[np.generic]]


def check_numbers(net: SuperNet) -> None:
    """Runs the original network in ONNX Runtime, and each operator in PyTorch on the values that it reads there.

    Each operator is given ONNX Runtime's values, so that differences of operators do not add up.

    Raises:
        GraphError: ONNX Runtime cannot run the network, or an operator computes something else in PyTorch, or ONNX
            Runtime's optimisation breaks the network.
    """
    module = GraphModule(net.original).eval()
    images = torch.randn(net.input_shape, generator=torch.Generator().manual_seed(0))
    expected = reference(net.original, module.schedule.nodes, images)
    values = {name: torch.from_numpy(np.array(value)) for name, value in expected.items()}
    for position, node in enumerate(module.schedule.nodes):
        computed = {name: values[name] for name in net.original.activations(node)}
        with torch.inference_mode():
            module.advance(computed, position, position + 1, hold=node.outputs)
        for name in node.outputs:
            if name in values and (difference := _difference(computed[name], expected[name])) > TOLERANCE:
                raise GraphError(
                    f"graph {net.name}: {node.kind} {node.name} computes other numbers in PyTorch than in ONNX "
                    f"Runtime: they differ by {difference:.1e} of the largest, {TOLERANCE:.0e} is allowed; correct "
                    f"`call` of the rule for {node.kind}"
                )
    optimised = reference(net.original, (), images, optimise=True)
    for name in net.original.outputs:
        difference = _difference(torch.from_numpy(np.array(optimised[name])), expected[name])
        if difference <= TOLERANCE:
            continue
        raise GraphError(
            f"graph {net.name}: ONNX Runtime's optimisation, with which exports run, computes another output {name} "
            f"than ONNX Runtime without it: they differ by {difference:.1e} of the largest, "
            f"{TOLERANCE:.0e} is allowed; make the network without operators that it joins wrongly, such as pads in "
            f"front of a pooling"
        )


def reference(graph: Graph, nodes: tuple[Node, ...], images: Tensor, *, optimise: bool = False) -> Values:
    """What ONNX Runtime computes for images: the outputs and every result of some nodes, by name, with the images.

    Args:
        graph: the network.
        nodes: the nodes whose results are wanted beside the outputs.
        images: the graph's input.
        optimise: let ONNX Runtime join operators, as it does unless it is told otherwise.

    Raises:
        GraphError: ONNX Runtime cannot run the network.
    """
    import onnxruntime

    model = to_onnx(graph)
    returned = [value.name for value in model.graph.output]
    inner = [name for node in nodes for name in node.outputs if name and name not in graph.outputs]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in inner)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run([*returned, *inner], {INPUT: images.numpy()})
    except Exception as error:  # ONNX Runtime raises errors of many kinds
        raise GraphError(
            f"graph {graph.name}: ONNX Runtime, which verifies exports, cannot run it{' optimised' * optimise}: "
            f"{first_line(error)}; replace the operator that it names"
        ) from error
    return dict(zip([*graph.outputs, *inner], results, strict=True)) | {graph.input: images.numpy()}


def _difference(output: Tensor, expected: npt.NDArray[np.generic]) -> float:
    """Largest difference relative to the largest finite number; infinite where shapes or infinite numbers differ.

    NumPy compares in one thread: threads of PyTorch wait for each other at the many small tensors of a network.
    """
    computed = output.numpy()
    if computed.shape != expected.shape:
        return float("inf")
    if np.array_equal(computed, expected):
        return 0.0
    computed, target = computed.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(target[np.isfinite(target)])
    with np.errstate(invalid="ignore"):  # of equal infinite numbers, which do not differ
        gaps = np.abs(computed - target)
    gaps[(computed == target) | (np.isnan(computed) & np.isnan(target))] = 0.0
    return float(np.nan_to_num(gaps, nan=np.inf, posinf=np.inf).max() / max(finite.max(initial=0.0), 1e-30))
