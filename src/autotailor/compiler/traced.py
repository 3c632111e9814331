"""Compares a module of PyTorch with the graph of its export.

An exporter runs a network on one image of zeros and records the operators. Where Python code branches on the values of
the image, the record holds the branch of that image alone.
"""

import logging

import numpy as np
import torch
from torch import nn

from autotailor.compiler.library import quiet
from autotailor.compiler.numbers import reference
from autotailor.compiler.sources.export import evaluating
from autotailor.compiler.sources.outputs import flat
from autotailor.ir.errors import GraphError
from autotailor.ir.execution.modules.graph import GraphModule, tensors
from autotailor.ir.graph import Graph

Tensor = torch.Tensor
logger = logging.getLogger(__name__)

NAMED = 5  # parameters that a message lists
ROUNDING = 1e-2  # relative difference of outputs that rounding may reach
AMPLIFIED = 10  # how much more than rounding of the image may change the outputs, rounding of all layers may
SMALL = 1e-6  # outputs are compared with the largest one, or with this number where all are smaller


def check_export(network: nn.Module, graph: Graph) -> None:
    """Runs a module and the graph of its export on a few images.

    Args:
        network: the module.
        graph: of the module's export, before anything in it is changed.

    Raises:
        GraphError: the outputs for one of the images differ by more than rounding.
    """
    parameter = next(network.parameters(), torch.empty(0))
    exported = GraphModule(graph).eval()
    generator = torch.Generator().manual_seed(0)
    noise, disturbance = (torch.randn(graph.shapes[graph.input], generator=generator) for _ in range(2))
    images = {"noise": noise, "noise times 100": 100 * noise, "ones": torch.ones_like(noise)}
    if parameter.dtype == torch.float16:  # its squares of large numbers overflow, which those of the export do not
        del images["noise times 100"]
    with evaluating(network), torch.no_grad(), quiet(), torch.compiler.set_stance("force_eager"):
        for kind, image in images.items():
            image = image.to(parameter.dtype)  # both networks get the same image, after rounding
            expected = _run(network, image.to(parameter.device))
            if expected is None:
                continue
            difference = _difference(expected, tensors(exported(image.float())))
            if difference <= ROUNDING:
                continue
            step = max(torch.finfo(parameter.dtype).eps, torch.finfo(noise.dtype).eps)
            disturbed = _run(network, (image * (1 + step * disturbance)).to(parameter))
            if disturbed is None or difference <= AMPLIFIED * _difference(expected, disturbed):
                continue
            if _difference(expected, _in_onnx_runtime(graph, image.float())) > ROUNDING:
                raise GraphError(
                    f"graph {graph.name}: the network's outputs differ from those of its export by {difference:.0%} "
                    f"of the largest one for an image of {kind}; it probably branches on the values of its image in "
                    f"Python, and an export holds one branch: write the branch with torch.where, or give the ONNX "
                    f"file that is to be shipped"
                )


def warn_of_unused(network: nn.Module, image: Tensor) -> None:
    """Warns of parameters that nothing of an image reaches, such as those of a branch that it does not take.

    The export, the SuperNet and all exported SubNets lack these parameters. Nothing is said of a network that autograd
    cannot follow.
    """
    parameters = {name: p.detach().requires_grad_() for name, p in network.named_parameters() if p.is_floating_point()}
    try:
        with evaluating(network), quiet(), torch.enable_grad(), torch.compiler.set_stance("force_eager"):
            first = next(iter(parameters.values()))
            outputs = flat(torch.func.functional_call(network, parameters, (image.to(first),)))
            whole = torch.stack([output.sum() for output in outputs.values()]).sum()
            gradients = torch.autograd.grad(whole, list(parameters.values()), allow_unused=True)
    except Exception:  # a network without parameters, or one of the user's that does something of its own
        return
    unused = [name for name, gradient in zip(parameters, gradients, strict=True) if gradient is None]
    if unused:
        others = f" and {len(unused) - NAMED} others" if len(unused) > NAMED else ""
        logger.warning(
            "network %s: an image reaches none of the parameters %s%s, so that no SubNet has them; if a branch that "
            "Python decides on should use them, write the branch with torch.where",
            type(network).__name__, ", ".join(unused[:NAMED]), others,
        )  # fmt: skip


def _in_onnx_runtime(graph: Graph, image: Tensor) -> tuple[Tensor, ...]:
    """What ONNX Runtime computes for the graph; nothing where ONNX Runtime cannot run the graph.

    A difference of an operator's rule is none of the network's: ``check_numbers`` names the rule later.
    """
    try:
        results = reference(graph, (), image.cpu())
    except GraphError:
        return ()
    return tuple(torch.from_numpy(np.array(results[name])) for name in graph.outputs)


def _run(network: nn.Module, image: Tensor) -> tuple[Tensor, ...] | None:
    """The network's outputs; None where the network refuses the image or returns something else than tensors."""
    try:
        outputs = flat(network(image))
    except Exception:  # a network of the user's may refuse images of such values
        return None
    return tuple(output.float().cpu() for output in outputs.values()) or None


def _difference(some: tuple[Tensor, ...], others: tuple[Tensor, ...]) -> float:
    """The largest difference of two networks' outputs, each relative to its largest number; 0 of other counts."""
    if len(some) != len(others):
        return 0.0
    return max(_apart(one.flatten(), other.flatten()) for one, other in zip(some, others, strict=True))


def _apart(some: Tensor, others: Tensor) -> float:
    """The largest difference of two rows, relative to the largest number; 0 where a number is not finite."""
    if some.shape != others.shape or not (some.isfinite().all() and others.isfinite().all()):
        return 0.0
    scale = max(float(some.abs().max()), float(others.abs().max()), SMALL)
    return float((some - others).abs().max()) / scale
