"""Checks of a compiled classifier against onnxruntime and the network that it came from."""

import contextlib
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx2torch
import onnxruntime
import torch

import autotailor
from acceptance.classifiers import picture
from autotailor.ir.dimensions.dimension import EXPAND_RATIO, HEADS, V_SCALE, WIDTH
from autotailor.ir.dimensions.resampling import is_resampled
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.graph import OUTPUT

Array = npt.NDArray[np.float32]
TOLERANCE = 1e-4
WIDTHS = frozenset({WIDTH, EXPAND_RATIO, HEADS, V_SCALE})
"""Kinds of variables that change widths."""


def relative(actual: Array, expected: Array) -> float:
    """Largest difference over the largest value; infinite where anything is not finite or the shapes differ."""
    if actual.shape != expected.shape or not (np.isfinite(actual).all() and np.isfinite(expected).all()):
        return float("inf")
    return float(np.abs(actual - expected).max() / max(float(np.abs(expected).max()), 1e-30))


def run_onnx(model: onnx.ModelProto, x: Array, every: bool = False) -> dict[str, Array]:
    """Outputs of a model in onnxruntime; with ``every``, of all its operators, without graph optimisation."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    if every:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        names = [name for node in copied.graph.node for name in node.output if name]
        del copied.graph.output[:]
        copied.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(copied.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {session.get_inputs()[0].name: x}), strict=True))


def compile_model(model: onnx.ModelProto, space: Mapping[str, Any] | None = None) -> autotailor.SuperNet:
    """Compiles an ONNX model through a file; by default without a configuration."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        onnx.save(model, str(path))
        return autotailor.compile(path, space)


def answered(run: Callable[[Array], Array], side: int, tries: int = 20) -> Array:
    """A picture ``[1, 3, side, side]`` of which a network makes finite numbers: with random weights, networks that
    divide by what they compute (bilinear attention) answer some pictures with 0 / 0."""
    for _ in range(tries):
        x: Array = picture(side).numpy()
        if np.isfinite(run(x)).all():
            return x
    raise AssertionError(f"the network answers none of {tries} pictures with finite numbers")


@torch.no_grad()
def check_largest(net: autotailor.SuperNet, original: onnx.ModelProto) -> tuple[float, float]:
    """Relative error of the largest SubNet against the original, both in onnxruntime, and what is allowed.

    Where random weights amplify rounding, single precision may be twice as far off as it is from double precision.
    """
    x = answered(lambda x: next(iter(run_onnx(original, x).values())), net.input_shape[-1])
    expected = next(iter(run_onnx(original, x).values()))
    error = relative(run_onnx(to_onnx(net.slice(net.largest())), x)[OUTPUT], expected)
    if error < TOLERANCE:
        return error, TOLERANCE
    return error, max(TOLERANCE, 2 * rounding(net, net.largest(), torch.from_numpy(x)))


@torch.no_grad()
def rounding(net: autotailor.SuperNet, subnet: autotailor.SubNet, x: torch.Tensor) -> float:
    """How far rounding alone can take the logits: the largest relative difference of the built module in single
    precision from itself in double precision, and from itself on pictures that differ in their last two bits."""
    network = net.build(subnet)
    single = network(x).numpy()
    generator = torch.Generator().manual_seed(0)
    nudged = [network(x * (1 + 2**-21 * (torch.rand(x.shape, generator=generator) - 0.5))).numpy() for _ in range(4)]
    exact = network.double()(x.double()).numpy()
    return max(relative(single, exact), *(relative(other, single) for other in nudged))


def response(original: onnx.ModelProto, side: int) -> float:
    """How much the logits of two pictures differ, relative to their size: near zero, checks would see little."""

    def run(x: Array) -> Array:
        return next(iter(run_onnx(original, x).values()))

    first, second = (run(answered(run, side)) for _ in range(2))
    return relative(first, second)


@dataclass(frozen=True)
class SubNetCheck:
    """What one SubNet's forms say of two pictures.

    Attributes:
        batch_error: relative error of the second picture's logits in a batch of two against those it has alone.
        elastic_error: relative error of the SuperNet's own forward against the built module.
        onnx_error: the same of the exported model in onnxruntime.
        wrong_shapes: tensors whose deduced shape is not onnxruntime's: (name, deduced, found).
        rounding: what rounding alone can change, where the other errors are large: random weights can amplify it. The
            errors of the batch and of the elastic module are of double precision then, and so is that of the exported
            model, or its sigmoids are exact.
        resampled: whether the SubNet reads weights that were resampled for its resolution: the built module has them
            rounded to single precision, also in double precision.
    """

    batch_error: float
    elastic_error: float
    onnx_error: float
    wrong_shapes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    rounding: float = 0.0
    resampled: bool = False

    @property
    def passed(self) -> bool:
        """Whether all forms agree, as far as single precision can tell."""
        allowed = max(TOLERANCE, 2 * self.rounding)
        elastic = allowed if self.resampled else TOLERANCE
        return not self.wrong_shapes and self.elastic_error < elastic and self.error < allowed

    @property
    def error(self) -> float:
        """The largest of all errors."""
        return max(self.batch_error, self.elastic_error, self.onnx_error)


@torch.no_grad()
def check_subnet(net: autotailor.SuperNet, module: ElasticModule, subnet: autotailor.SubNet) -> SubNetCheck:
    """Compares the SuperNet's forward, the built module, and the exported model; and all deduced shapes."""
    shapes = net.shapes(subnet)
    side = shapes[net.graph.input][-1]
    module, network = module.eval().activate(subnet), net.build(subnet)
    x = torch.cat([torch.from_numpy(answered(lambda x: network(torch.from_numpy(x)).numpy(), side)) for _ in range(2)])
    built, alone, elastic = network(x).numpy(), network(x[1:]).numpy(), module(x).numpy()
    model = to_onnx(net.slice(subnet))
    tensors = run_onnx(model, x[:1].numpy(), every=True)
    last = net.elastic.remainder(subnet).tensor(net.graph.output)
    found = {last if name == OUTPUT else name: tensor.shape for name, tensor in tensors.items()}
    wrong = tuple((n, shapes.get(n, ()), shape) for n, shape in found.items() if shapes.get(n) != shape)
    check = SubNetCheck(
        relative(built[1:], alone), relative(elastic, built), relative(tensors[OUTPUT], built[:1]), wrong
    )
    if check.error < TOLERANCE:
        return check
    allowed = max(rounding(net, subnet, one) for one in x.split(1))  # each picture's logits can be near zero
    double, double_elastic = network.double(), net.module().eval().activate(subnet).double()
    exact, exact_elastic = double(x.double()).numpy(), double_elastic(x.double()).numpy()
    return replace(
        check,
        batch_error=relative(exact[1:], double(x[1:].double()).numpy()),
        elastic_error=relative(exact_elastic, exact),
        onnx_error=_exported_error(model, x, built, exact, allowed),
        rounding=allowed,
        resampled=_resampled(net, subnet),
    )


def _exported_error(model: onnx.ModelProto, x: torch.Tensor, built: Array, exact: Array, allowed: float) -> float:
    """Relative error of an exported model: in double precision where rounding is amplified and onnx2torch reads it."""
    if allowed > TOLERANCE / 2:
        with contextlib.suppress(NotImplementedError):
            return relative(onnx2torch.convert(model).eval().double()(x[:1].double()).numpy(), exact[:1])
    return relative(run_onnx(with_exact_sigmoids(model), x[:1].numpy())[OUTPUT], built[:1])


def _resampled(net: autotailor.SuperNet, subnet: autotailor.SubNet) -> bool:
    sizes = net.elastic.sizes(subnet)
    weights = (net.propagation.dimensions[name] for name in net.graph.weights)
    return any(is_resampled(dimension, sizes) for dimensions in weights for dimension in dimensions)


def with_exact_sigmoids(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every Sigmoid as 1 / (1 + exp(-x)).

    onnxruntime's own kernel is right to 1e-8, not to 1e-7 of small values: a network that divides by sums of sigmoids
    near zero (bilinear attention with random weights) shows that in its logits.
    """
    spelled = onnx.ModelProto()
    spelled.CopyFrom(model)
    del spelled.graph.node[:]
    spelled.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((), np.float32), "one"))
    for node in model.graph.node:
        if node.op_type != "Sigmoid":
            spelled.graph.node.append(node)
            continue
        x, y = node.input[0], node.output[0]
        steps = (("Neg", (x,), f"{y}/neg"), ("Exp", (f"{y}/neg",), f"{y}/exp"))
        steps += (("Add", (f"{y}/exp", "one"), f"{y}/sum"), ("Reciprocal", (f"{y}/sum",), y))
        spelled.graph.node.extend(onnx.helper.make_node(kind, inputs, (output,)) for kind, inputs, output in steps)
    return spelled


def subnets(net: autotailor.SuperNet, count: int, seed: int = 0) -> list[autotailor.SubNet]:
    """The smallest SubNet, and ``count`` random ones."""
    rng = random.Random(seed)
    return [net.smallest(), *(net.sample(rng) for _ in range(count))]


def check_every_shape(net: autotailor.SuperNet, count: int, seed: int = 0) -> None:
    """Whatever a space offers is a network: nothing that describes the largest, smallest or random SubNets raises."""
    for subnet in [net.largest(), *subnets(net, count, seed)]:
        shapes = net.shapes(subnet)
        assert min(size for shape in shapes.values() for size in shape) > 0
        assert shapes[net.elastic.remainder(subnet).tensor(net.graph.output)] == (1, net.num_classes)
    assert net.operators()


def smallest_share(net: autotailor.SuperNet) -> float:
    """MACs of the smallest SubNet over those of the largest, at the largest's resolution."""
    assignment = net.smallest().assignment
    assignment.update({v.name: v.choices[v.default] for v in net.space if v.kind == "resolution"})
    smallest = autotailor.SubNet.from_assignment(net.space, assignment)
    few, many = net.macs().predict(np.stack([smallest.to_array(), net.largest().to_array()]))
    return float(few / many)
