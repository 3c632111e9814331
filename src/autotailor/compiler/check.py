"""Final checks of a compiled network: its tensors fit together, and its operators run.

ONNX's shape inference checks few of the conditions of an operator; it does not check the channels of a convolution.
Whether a static operator can be executed shows only in a run.
"""

import copy
import logging
from collections.abc import Callable

import numpy as np
import torch

from autotailor.compiler.library import reason
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.errors import GraphError, SpaceError
from autotailor.ir.execution.head import VIEWS
from autotailor.ir.execution.modules.graph import GraphModule, tensors
from autotailor.ir.feature import Shape
from autotailor.ir.graph import Graph
from autotailor.ir.operators.rule import Tensor
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

logger = logging.getLogger(__name__)

EXACT = 1e-5  # relative difference that rounding to single precision within a network in double precision may reach
AMPLIFIED = 0.1  # relative difference that rounding may reach in a network with random weights
SHARES = 1e-3  # rounding of a sum of probabilities
CHOOSING = VIEWS | {"TopK", "Mul", "Div", "Softmax", "LogSoftmax", "Sigmoid", "Log"}  # what may stand behind a choice
BOUNDING = frozenset({"Add", "Where", "Max", "Min", "Clip", "Pad"})  # their infinite constants are masks or bounds


def check_weights(graph: Graph) -> None:
    """Refuses weights with NaN or infinity, which a diverged training leaves behind.

    Raises:
        GraphError: a weight holds NaN, or holds infinity and is neither a mask nor a bound.
    """
    for node in graph.nodes:
        for name in node.inputs:
            weight = graph.weights.get(name)
            if weight is None or not np.issubdtype(weight.dtype, np.floating) or np.isfinite(weight).all():
                continue
            nan = int(np.isnan(weight).sum())
            if nan or node.kind not in BOUNDING:
                count = f"{nan} NaN" if nan else f"{int(np.isinf(weight).sum())} infinite values"
                raise GraphError(
                    f"graph {graph.name}: weight {name} of {node.kind} {node.name} has {count} among {weight.size}; "
                    f"export the network from a checkpoint before its training diverged"
                )


def check_network(net: SuperNet) -> None:
    """Compares every deduced shape with the file's, and runs the original network on one image and on a batch.

    Raises:
        GraphError: a tensor does not fit the operators around it, an operator cannot be executed, the network returns
            something other than finite numbers, its result for an image depends on the rest of the batch, or its
            smallest SubNet returns something other than finite numbers, or it returns the best of its scores alone.
    """
    _check_shapes(net)
    _check_choice(net)
    module = GraphModule(net.original).eval()
    images = _unlike(net.input_shape)
    alone = _run(net, module, images[:1], "cannot be executed", "check that onnxruntime runs the file")
    for output, shape in zip(alone, net.output_shapes, strict=True):
        _check_output(net, output, shape)
    remedy = "export it with a dynamic batch axis, and without operators that mix images"
    batch = _run(net, module, images, "can be executed for one image only, not for a batch", remedy)
    fits = all(
        many.shape[1:] == one.shape[1:] and len(many) == len(images) for many, one in zip(batch, alone, strict=True)
    )
    if not fits or _mixes_images(GraphModule(net.original, logits=True).eval(), images):
        raise GraphError(f"graph {net.name}: its result for an image depends on the rest of the batch; {remedy}")
    _check_smallest(net)


def _check_output(net: SuperNet, output: Tensor, shape: Shape) -> None:
    """Refuses an output for one image that is none, or of which nothing can be learnt."""
    if tuple(output.shape) != shape:
        raise GraphError(
            f"graph {net.name}: it returns a tensor of shape {list(output.shape)}, expected {list(shape)} from its "
            f"operators; check that onnxruntime runs the file"
        )
    if output.is_floating_point() and not output.isfinite().all():
        raise GraphError(
            f"graph {net.name}: it returns NaN or infinity for an image of normally distributed noise; check its "
            f"weights, for instance the variances of its BatchNorm"
        )
    if net.num_classes and not net.head.activation and _are_probabilities(output):
        raise GraphError(
            f"graph {net.name}: it returns probabilities, but does not end in a Softmax that could be set aside for "
            f"training; export it up to its logits, or with a Softmax operator at its end"
        )
    if not output.is_floating_point():
        raise GraphError(
            f"graph {net.name}: it returns indices; a classifier returns logits, and another network scores or maps, "
            f"export it up to them"
        )


def _mixes_images(module: GraphModule, images: Tensor) -> bool:
    """Whether logits of a batch of images differ from those of the images one by one, by more than rounding.

    Behind a Softmax of huge logits, rounding may make another class the likeliest. In double precision rounding stays
    small, even where a network with random weights amplifies it. Some networks cannot be computed in double precision,
    for instance because they cast to single precision.
    """
    with torch.inference_mode():
        try:
            exact, double = copy.deepcopy(module).double(), images.double()
            outputs = tensors(exact(double))
            if all(output.dtype == torch.float64 for output in outputs):
                return _differ(outputs, _one_by_one(exact, double), EXACT)
        except Exception:  # operators refuse double precision with errors of many kinds
            logger.debug("network %s cannot be computed in double precision", module.graph.name, exc_info=True)
        return _differ(tensors(module(images)), _one_by_one(module, images))


def _one_by_one(module: GraphModule, images: Tensor) -> tuple[Tensor, ...]:
    """The outputs for images that are run one after the other, each ``[n, ...]``."""
    return tuple(torch.cat(rows) for rows in zip(*(tensors(module(image[None])) for image in images), strict=True))


def check_resolution(net: SuperNet, source: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
    """Warns where the source computes something else for the smallest images than the SubNet of their resolution.

    What follows from the size of the images, such as a count of positions, is fixed in an exported network.

    Args:
        net: the compiled network.
        source: computes the source's outputs for an image, or raises an error where the source takes no such image.
    """
    if RESOLUTION not in net.space.positions:
        return
    side = min(net.space[RESOLUTION].choices)
    subnet = SubNet.from_assignment(net.space, {**net.largest().assignment, RESOLUTION: side})
    image = _noise(net.shapes(subnet)[net.graph.input])
    try:
        with torch.inference_mode():
            expected = source(image)
            outputs = tensors(GraphModule(net.slice(subnet)).eval()(image))
            same = [one.shape for one in outputs] == [other.shape for other in expected]
            differ = same and _differ(outputs, expected)
    except Exception:  # sources for images of one size raise errors of any kind
        return
    if differ:
        meta, pairs = net.input_shape[2], tuple(zip(outputs, expected, strict=True))
        some, others = max(pairs, key=lambda pair: float((pair[0] - pair[1]).abs().max() / pair[1].abs().max()))
        logger.warning(
            "network %s: at resolution %s its SubNet returns something else than its source, by up to %.2g where the "
            "source returns up to %.2g: what follows from the size of images, such as a count of positions or the pads "
            "of a convolution, is fixed for %s pixels, or the source resizes its weights in another way; take means in "
            "the place of sums over positions, or leave that resolution out (model.space.resolution; [%s] keeps one)",
            net.name, side, (some - others).abs().max(), others.abs().max(), meta, meta,
        )  # fmt: skip


def check_space(net: SuperNet) -> None:
    """Refuses a network of which nothing can change, before it is trained for SubNets that it does not have.

    Raises:
        SpaceError: the space has no variable.
    """
    if not len(net.space):
        raise SpaceError(
            f"network {net.name}: nothing of it can change, so that it has no SubNets; ask for modifications in the "
            f"model's section space, or give another network (`autotailor inspect` shows what each part allows)"
        )


def _check_shapes(net: SuperNet) -> None:
    for name, dimensions in net.propagation.dimensions.items():
        weight = net.graph.weights.get(name)
        shape = net.graph.shapes[name] if weight is None else weight.shape
        needed = tuple(dimension.meta for dimension in dimensions)
        if needed != shape:
            raise GraphError(
                f"graph {net.name}: tensor {name} of shape {list(shape)} does not fit the operators around it, which "
                f"need {list(needed)}; check that onnxruntime runs the file"
            )


def _check_choice(net: SuperNet) -> None:
    """Refuses a network whose outputs are picked by value, so that they belong to no classes."""
    name = net.graph.outputs[0] if net.num_classes else ""
    while (node := net.graph.producers.get(name)) is not None and node.kind in CHOOSING:
        if node.kind == "TopK":
            raise GraphError(
                f"graph {net.name}: it returns its {net.num_classes} largest scores (TopK {node.name}), whose classes "
                f"differ from image to image; export it up to its logits, one for each class"
            )
        name = node.inputs[0]


def _check_smallest(net: SuperNet) -> None:
    """Runs the smallest SubNet on one image."""
    smallest = net.smallest()
    if smallest == net.largest():
        return
    module = GraphModule(net.slice(smallest)).eval()
    image = _noise(net.shapes(smallest)[net.graph.input])
    remedy = "leave the choices that it cannot have out of model.space, such as the lowest resolutions"
    outputs = _run(net, module, image, "has a smallest SubNet that cannot be executed", remedy)
    if not all(output.isfinite().all() for output in outputs):
        raise GraphError(
            f"graph {net.name}: its smallest SubNet returns NaN or infinity for an image of normally distributed "
            f"noise, and the whole network does not; {remedy}"
        )


def _unlike(shape: Shape) -> Tensor:
    """Images ``[4, ...]`` that a network tells apart: noise, bright, dark, and one whose first channel is bright."""
    images = _noise((4, *shape[1:]))
    images[1] = images[1] * 0.1 + 2.0
    images[2] = -1.5
    images[3, 0] += 3.0
    return images


def _noise(shape: Shape) -> Tensor:
    """Images of normally distributed noise, the same in each check."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _run(net: SuperNet, module: GraphModule, images: Tensor, complaint: str, remedy: str) -> tuple[Tensor, ...]:
    try:
        with torch.inference_mode():
            return tensors(module(images))
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(f"graph {net.name}: it {complaint}: {reason(error)}; {remedy}") from error


def _are_probabilities(rows: Tensor) -> bool:
    """Whether outputs ``[n, classes]`` are not negative and each row sums to 1."""
    if not rows.is_floating_point() or rows.shape[1] < 2:
        return False
    return bool((rows >= 0).all() and (rows.sum(1) - 1).abs().max() < SHARES)


def _differ(some: tuple[Tensor, ...], others: tuple[Tensor, ...], share: float = AMPLIFIED) -> bool:
    """Whether outputs differ by more than rounding, even where a network with random weights amplifies rounding."""
    return any(bool((a - b).abs().max() > share * b.abs().max()) for a, b in zip(some, others, strict=True))
