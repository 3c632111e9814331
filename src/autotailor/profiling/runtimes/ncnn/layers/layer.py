"""Layers of a ``.param``, fragments made of layers, and the registry of functions that write an operator's fragment.

Example: ``Conv`` 64 -> 64, 3x3, pads 1, with a bias and a fused Relu is::

    Convolution 0=64 1=3 11=3 12=1 13=1 14=1 2=1 3=1 4=1 5=1 6=36864 9=1
"""

from collections.abc import Callable
from dataclasses import dataclass

from autotailor.ir.feature import OperatorFeature, Shape
from autotailor.profiling.errors import ProfilingError

Value = int | float | str | tuple[int, ...] | tuple[float, ...]
Params = tuple[tuple[int, Value], ...]


@dataclass(frozen=True)
class Layer:
    """One line of a ``.param``, without the layer's name and blobs.

    Attributes:
        type: ncnn's layer type.
        params: (id, value) pairs. A tuple is an array; a text is an expression over the shapes of the inputs.
        in_place: whether ncnn runs the layer on its input's memory.
    """

    type: str
    params: Params = ()
    in_place: bool = False

    def line(self, name: str, inputs: list[str], outputs: list[str]) -> str:
        """The layer's line of a ``.param``."""
        words = [self.type, name, str(len(inputs)), str(len(outputs)), *inputs, *outputs]
        return " ".join(words + [_param_text(key, value) for key, value in self.params])


def _param_text(key: int, value: Value) -> str:
    if isinstance(value, tuple):
        return f"{-23300 - key}={len(value)}," + ",".join(str(v) for v in value)
    return f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}"


@dataclass(frozen=True)
class Step:
    """One layer of a fragment.

    Attributes:
        layer: the layer that runs.
        reads: blobs that the layer reads; ``i0``, ``i1`` ... are the operator's inputs.
        writes: blobs that the layer writes; ``o0``, ``o1`` ... are the operator's outputs.
        shapes: shapes of ``reads`` without the batch.
    """

    layer: Layer
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    shapes: tuple[Shape, ...] = ()


Fragment = tuple[Step, ...]
"""All layers of one operator, in order."""

Writer = Callable[[OperatorFeature], Layer | Fragment]
LAYERS: dict[str, Writer] = {}
"""Kinds of operators to the functions that write their layers."""


def writes(*kinds: str) -> Callable[[Writer], Writer]:
    """Registers a writer for kinds of operators."""

    def register(writer: Writer) -> Writer:
        LAYERS.update(dict.fromkeys(kinds, writer))
        return writer

    return register


def fragment(feature: OperatorFeature) -> Fragment:
    """The layers of a fused operator.

    Raises:
        ProfilingError: no function writes operators of this kind, or ncnn cannot run the operator.
    """
    if feature.kind not in LAYERS:
        raise ProfilingError(
            f"operator {feature.id}: ncnn layers of kind {feature.kind} are not written yet; known are "
            f"{', '.join(sorted(LAYERS))}: add a function to profiling/runtimes/ncnn/layers"
        )
    made = LAYERS[feature.kind](feature)
    return single(feature, made) if isinstance(made, Layer) else made


def single(feature: OperatorFeature, made: Layer) -> Fragment:
    """A fragment of one layer, which reads the operator's inputs and writes its outputs."""
    shapes = tuple(ncnn_shape(shape) for shape in feature.inputs)
    outputs = tuple(f"o{i}" for i in range(len(feature.outputs)))
    return (Step(made, tuple(f"i{i}" for i in range(len(shapes))), outputs, shapes),)


def chain(feature: OperatorFeature, *parts: tuple[Layer, Shape]) -> Fragment:
    """A fragment of layers in a chain, each given with its output's shape; the first layer reads all inputs."""
    steps: list[Step] = []
    reads = tuple(f"i{i}" for i in range(len(feature.inputs)))
    shapes = tuple(ncnn_shape(shape) for shape in feature.inputs)
    for i, (made, shape) in enumerate(parts, 1):
        blob = "o0" if i == len(parts) else f"t{i}"
        steps.append(Step(made, reads, (blob,), shapes))
        reads, shapes = (blob,), (shape,)
    return tuple(steps)


def memory(shape: Shape, blob: str) -> Step:
    """A step that writes a constant into a blob."""
    keys = {1: (0,), 2: (0, 1), 3: (0, 1, 2), 4: (0, 1, 11, 2)}[len(shape)]
    return Step(Layer("MemoryData", tuple(zip(keys, reversed(shape), strict=True))), (), (blob,))


def ncnn_shape(shape: Shape) -> Shape:
    """Shape without the batch, which ncnn does not have: ``[1, c, h, w] -> (c, h, w)``, ``[1, n] -> (n,)``.

    Raises:
        ProfilingError: the batch is not 1, or more than ncnn's four axes are left.
    """
    if len(shape) < 2 or shape[0] != 1:
        raise ProfilingError(
            f"an operator of ncnn cannot be timed by itself on an activation of shape {list(shape)}: expected a batch "
            "of 1 first, and no windows of an image or tokens in its place, because ncnn's blobs have no batch (its "
            "converter may still convert the whole network); use the runtime onnxruntime for this network"
        )
    if len(shape) > 5:
        raise ProfilingError(
            f"ncnn cannot run an activation of shape {list(shape)}: expected at most four axes behind the batch; use "
            "the runtime onnxruntime for this network"
        )
    return tuple(shape[1:])


def alone(feature: OperatorFeature) -> None:
    """Refuses an operator that is fused with followers."""
    if feature.followers:
        kinds = ", ".join(follower.kind for follower in feature.followers)
        raise ProfilingError(
            f"operator {feature.id}: ncnn does not fuse {feature.kind} with {kinds}; "
            "enumerate operators with the fusion rules of this runtime"
        )
