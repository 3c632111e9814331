"""Checks that the LUT's operators cover a converted network: exactly one operator must claim each layer."""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.runtimes.ncnn.fragments import fragment
from autotailor.profiling.runtimes.ncnn.layers import Step, ncnn_shape

FREE_LAYERS = frozenset({"Input", "Split", "Noop"})
"""Layers that no operator claims, because they only pass blobs on (measured: 0.1 to 0.3 us for each Split)."""

TO_THE_END = -233
"""Number that pnnx writes as the end of a range that reaches to the end of its axis."""

Params = tuple[tuple[int, tuple[float | str, ...]], ...]
Signature = tuple[str, Params, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class Claims:
    """Which layers of one network the operators of its SubNet claim.

    Attributes:
        claimed: names of layers that belong to an operator.
        unclaimed: names of layers that belong to no operator.
        idle: operators with a layer that the network does not contain.
        free: names of layers that cost nothing.
    """

    claimed: tuple[str, ...]
    unclaimed: tuple[str, ...]
    idle: tuple[OperatorFeature, ...]
    free: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every layer is claimed, and the network contains every layer of every operator."""
        return not self.unclaimed and not self.idle


def claims(param_path: Path, features: Sequence[OperatorFeature], input_shape: Sequence[int]) -> Claims:
    """Matches the layers of a ``.param`` with the operators of the same SubNet.

    Args:
        param_path: the file that pnnx wrote.
        features: the SubNet's operators, one for each place; an operator may occur several times.
        input_shape: shape of the image, ``[1, 3, r, r]``.
    """
    offers: dict[Signature, list[int]] = {}
    for number, feature in enumerate(features):
        if not (feature.kind == "Flatten" and feature.inputs[0][2:] == (1, 1)):  # pnnx leaves such a Flatten out
            for signature in feature_signatures(feature):
                offers.setdefault(signature, []).append(number)
    claimed, unclaimed, free = [], [], []
    for name, kind, signature in layer_signatures(param_path, ncnn_shape(tuple(input_shape))):
        if kind in FREE_LAYERS:
            free.append(name)
        elif offers.get(signature):
            offers[signature].pop()
            claimed.append(name)
        else:
            unclaimed.append(name)
    idle = sorted({number for rest in offers.values() for number in rest})
    return Claims(tuple(claimed), tuple(unclaimed), tuple(features[number] for number in idle), tuple(free))


def feature_signatures(feature: OperatorFeature) -> list[Signature]:
    """Layer type, parameters and input shapes of each layer that is written for an operator."""
    return [_step_signature(step) for step in fragment(feature) if step.layer.type not in FREE_LAYERS]


def _step_signature(step: Step) -> Signature:
    words = shlex.split(step.layer.line("k", [], []))[4:]
    return _signature(step.layer.type, _params(words), step.shapes)


def _signature(kind: str, params: Params, shapes: Sequence[tuple[int, ...]]) -> Signature:
    """Signature of a layer; layers that differ only in ways without a cost have the same signature.

    For 1x1 maps pnnx writes vectors, and for 1x1 convolutions on them inner products.
    """
    vectors = tuple(sorted(shape[:1] if shape[1:] == (1, 1) else shape for shape in shapes))
    values = dict(params)
    if kind == "BinaryOp" and values.get(1) == (1.0,):  # the value of a scalar costs nothing
        params = tuple((key, value) for key, value in params if key != 2)
    if kind == "Padding":  # the value of a margin costs nothing, either
        params = tuple((key, value) for key, value in params if key != 5)
    if kind == "Interp":
        params = _interpolation(values, shapes[0])
    if kind == "Crop":
        params = _ranges(values, shapes[0])
    if kind == "Convolution" and values[1] == values[11] == (1.0,) and len(vectors[0]) == 1:
        kept = {0: values[0], 1: values[5], 2: values[6], 9: values.get(9), 10: values.get(10)}
        return "InnerProduct", tuple((key, value) for key, value in kept.items() if value is not None), vectors
    return kind, params, vectors


def _interpolation(values: dict[int, tuple[float | str, ...]], shape: tuple[int, ...]) -> Params:
    """Parameters of an Interp, with its output's size in place of scales that pnnx may have written."""
    given = [(values.get(key, (0.0,))[0], values.get(scale, (1.0,))[0]) for key, scale in ((3, 1), (4, 2))]
    sizes = [
        int(size) or math.floor(float(scale) * side) for (size, scale), side in zip(given, shape[-2:], strict=True)
    ]
    return (0, values[0]), (3, (sizes[0],)), (4, (sizes[1],)), (6, values.get(6, (0.0,)))


def _ranges(values: dict[int, tuple[float | str, ...]], shape: tuple[int, ...]) -> Params:
    """Parameters of a Crop, with bounds counted from the front of each axis and with sorted axes."""
    bounds = zip(values[11], values[9], values[10], strict=True)
    cuts = []
    for axis, start, end in sorted((int(a), int(s), int(e)) for a, s, e in bounds):
        first, last, _ = slice(start, None if end == TO_THE_END else end).indices(shape[axis])
        cuts.append((axis, first, last))
    axes, starts, ends = zip(*cuts, strict=True)
    return (9, starts), (10, ends), (11, axes)


def layer_signatures(param_path: Path, input_shape: tuple[int, ...]) -> list[tuple[str, str, Signature]]:
    """Name, type and signature of each layer. The network runs once with zero weights, which shows the shapes."""
    lines = param_path.read_text().splitlines()[2:]
    shapes = blob_shapes(param_path, input_shape)
    signatures = []
    for line in lines:
        kind, name, inputs, outputs, *rest = shlex.split(line)
        bottoms = rest[: int(inputs)]
        params = _params(rest[int(inputs) + int(outputs) :])
        signatures.append((name, kind, _signature(kind, params, [shapes[b] for b in bottoms])))
    return signatures


def _params(words: Sequence[str]) -> Params:
    """Parameters by id. Arrays come without their length, and numbers are rounded to single precision."""
    read: dict[int, tuple[float | str, ...]] = {}
    for word in words:
        key, _, value = word.partition("=")
        number = int(key)
        if number >= 0:
            read[number] = (_number(value),) if _is_number(value) else (value,)
        else:
            read[-23300 - number] = tuple(_number(v) for v in value.split(",")[1:])
    return tuple(sorted(read.items()))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9]*\.?[0-9]*(e[-+]?[0-9]+)?", text) is not None


def _number(text: str) -> float:
    if not _is_number(text):
        raise ProfilingError(f"parameter {text!r} of a .param is no number")
    return float(f"{float(text):.6g}")


def blob_shapes(param_path: Path, input_shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of all blobs without the batch."""
    import ncnn
    import numpy as np

    net = ncnn.Net()
    option = net.opt
    option.lightmode = False
    net.opt = option
    if net.load_param(str(param_path)) != 0 or net.load_model(ncnn.DataReaderFromEmpty()) != 0:
        raise ProfilingError(f"{param_path}: ncnn cannot load the network; convert it again")
    extractor = net.create_extractor()
    extractor.input("in0", ncnn.Mat(np.zeros(input_shape, dtype=np.float32)).clone())
    shapes: dict[str, tuple[int, ...]] = {}
    for blob in net.blobs():
        code, mat = extractor.extract(blob.name)
        if code != 0:
            raise ProfilingError(f"{param_path}: ncnn cannot compute blob {blob.name}")
        shapes[blob.name] = (mat.c, mat.d, mat.h, mat.w) if mat.dims == 4 else (mat.c, mat.h, mat.w)[3 - mat.dims :]
    return shapes
