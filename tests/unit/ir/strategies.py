"""Random classifiers of supported operators, as ONNX models, for Hypothesis."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

SIDE = 16
CLASSES = 3
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Builder:
    """A graph under construction: ``x`` is its last tensor, of shape ``[1, channels, side, side]``."""

    def __init__(self, draw: Draw, channels: int = 3) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 99)))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.x, self.channels, self.side = "input", channels, SIDE

    def choose(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def run(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Appends a node; returns the name of its output, or names of all."""
        names = [f"t{len(self.nodes)}" if outputs == 1 else f"t{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, f"{kind}{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def weight(self, *shape: int, low: float = -1.0) -> str:
        """Random and of order 1; matrices and kernels keep the variance of what they multiply."""
        fan_in = math.prod(shape[1:]) if len(shape) > 1 else 3
        return self.constant((self.rng.uniform(low, 1.0, shape) * (3 / max(1, fan_in)) ** 0.5).astype(np.float32))

    def vector(self, size: int, low: float = -1.0) -> str:
        return self.constant(self.rng.uniform(low, 1.0, size).astype(np.float32))

    # Layers: each takes and returns the name of a tensor.

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        pads = [kernel // 2] * 4
        names = [x, self.weight(outputs, inputs // group, kernel, kernel)]
        names += [self.vector(outputs)] if self.draw(st.booleans()) else []
        return self.run("Conv", *names, pads=pads, strides=[stride, stride], group=group)

    def norm(self, x: str, channels: int, stride: int = 1) -> str:
        kind = self.choose("batch", "batch", "instance", "layer", "decomposed", "group", "scale", "none")
        if kind == "batch":
            vectors = [self.vector(channels, low) for low in (0.5, -1.0, -1.0, 0.5)]
            return self.run("BatchNormalization", x, *vectors)
        if kind == "instance":
            return self.run("InstanceNormalization", x, self.vector(channels), self.vector(channels))
        if kind == "scale":
            return self.run("Mul", x, self.constant(self.rng.uniform(-1, 1, (channels, 1, 1)).astype(np.float32)))
        if kind == "none":
            return x
        if kind == "group":
            return self.decomposed_group_norm(x, channels, -(-self.side // stride))
        last = self.run("Transpose", x, perm=[0, 2, 3, 1])
        normal = self.layer_norm(last, channels) if kind == "layer" else self.decomposed_layer_norm(last, channels)
        return self.run("Transpose", normal, perm=[0, 3, 1, 2])

    def layer_norm(self, x: str, channels: int) -> str:
        return self.run("LayerNormalization", x, self.vector(channels), self.vector(channels), axis=-1, epsilon=1e-2)

    def decomposed_layer_norm(self, x: str, channels: int) -> str:
        centred = self.run("Sub", x, self.run("ReduceMean", x, axes=[-1]))
        variance = self.run("ReduceMean", self.run("Pow", centred, self.constant(np.float32(2))), axes=[-1])
        deviation = self.run("Sqrt", self.run("Add", variance, self.constant(np.float32(1e-2))))
        scaled = self.run("Mul", self.run("Div", centred, deviation), self.vector(channels))
        return self.run("Add", scaled, self.vector(channels))

    def decomposed_group_norm(self, x: str, channels: int, side: int) -> str:
        """As PyTorch exports it."""
        groups = self.choose(*(groups for groups in (1, 2, 4) if channels % groups == 0))
        grouped = self.run("Reshape", x, self.constant(np.array([0, groups, -1], dtype=np.int64)))
        ones, zeros = (self.constant(np.full(groups, value, dtype=np.float32)) for value in (1, 0))
        normal = self.run("InstanceNormalization", grouped, ones, zeros, epsilon=1e-2)
        ungrouped = self.run("Reshape", normal, self.constant(np.array([1, channels, side, side], dtype=np.int64)))
        gain, shift = (self.constant(self.rng.uniform(-1, 1, (channels, 1, 1)).astype(np.float32)) for _ in range(2))
        return self.run("Add", self.run("Mul", ungrouped, gain), shift)

    def activation(self, x: str) -> str:
        kind = self.choose("Relu", "HardSwish", "Sigmoid", "silu", "gelu", "Elu", "none")
        if kind == "silu":
            return self.run("Mul", x, self.run("Sigmoid", x))
        if kind == "gelu":
            erf = self.run("Erf", self.run("Div", x, self.constant(np.float32(2**0.5))))
            half = self.run("Mul", x, self.run("Add", erf, self.constant(np.float32(1))))
            return self.run("Mul", half, self.constant(np.float32(0.5)))
        return x if kind == "none" else self.run(kind, x)

    def unit(self, x: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        """Convolution, normalisation, activation."""
        return self.activation(self.norm(self.conv(x, inputs, outputs, kernel, stride, group), outputs, stride))

    def width(self) -> int:
        return 4 * self.draw(st.integers(1, 4))

    # Blocks: each moves ``x`` on.

    def plain(self) -> None:
        width, stride = self.width(), self.choose(1, 2)
        self.x = self.unit(self.x, self.channels, width, self.choose(1, 3), stride)
        self.channels, self.side = width, -(-self.side // stride)

    def residual(self) -> None:
        inner = self.width()
        group = self.choose(1, 2, 4, inner)
        main = self.unit(self.x, self.channels, inner)
        main = self.unit(main, inner, inner, self.choose(3, 5), 1, group)
        main = self.gate(main, inner) if self.draw(st.booleans()) else main
        main = self.norm(self.conv(main, inner, self.channels), self.channels)
        self.x = self.activation(self.run("Add", *self.shuffled(main, self.x)))

    def shuffled(self, *names: str) -> tuple[str, ...]:
        return names if self.draw(st.booleans()) else names[::-1]

    def projected(self) -> None:
        width = self.width()
        main = self.unit(self.x, self.channels, width, 3, 2)
        if self.side % 2 == 0 and self.draw(st.booleans()):
            pooled = self.run("AveragePool", self.x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
            shortcut = self.conv(pooled, self.channels, width)
        else:
            shortcut = self.conv(self.x, self.channels, width, 1, 2)
        self.x = self.run("Add", *self.shuffled(main, shortcut))
        self.channels, self.side = width, -(-self.side // 2)

    def gate(self, x: str, channels: int) -> str:
        pooled = self.run("GlobalAveragePool", x)
        squeezed = self.run("Relu", self.conv(pooled, channels, 4))
        return self.run("Mul", x, self.run("Sigmoid", self.conv(squeezed, 4, channels)))

    def squeeze(self) -> None:
        self.x = self.gate(self.x, self.channels)

    def dense(self) -> None:
        for _ in range(self.draw(st.integers(1, 2))):
            width = self.width()
            new = self.unit(self.x, self.channels, width, 3)
            self.x = self.run("Concat", *self.shuffled(self.x, new), axis=1)
            self.channels += width

    def branches(self) -> None:
        widths = [self.width() for _ in range(self.draw(st.integers(2, 3)))]
        pieces = [self.unit(self.x, self.channels, width, self.choose(1, 3)) for width in widths]
        self.x = self.run("Concat", *pieces, axis=1)
        self.channels = sum(widths)

    def split(self) -> None:
        """ShuffleNet's unit: one half passes, one half is computed, then both are shuffled."""
        if self.channels % 2:
            return
        half = self.channels // 2
        sizes = self.constant(np.array([half, half], dtype=np.int64))
        left, right = self.run("Split", self.x, sizes, outputs=2, axis=1)
        right = self.unit(right, half, half, self.choose(1, 3))
        self.x = self.run("Concat", left, right, axis=1)
        if self.draw(st.booleans()):
            self.shuffle()

    def shuffle(self) -> None:
        if self.channels % 2:
            return
        grouped = self.constant(np.array([1, 2, self.channels // 2, self.side, self.side], dtype=np.int64))
        swapped = self.run("Transpose", self.run("Reshape", self.x, grouped), perm=[0, 2, 1, 3, 4])
        shape = self.constant(np.array([1, self.channels, self.side, self.side], dtype=np.int64))
        self.x = self.run("Reshape", swapped, shape)

    def pool(self) -> None:
        attributes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        kind = self.choose("MaxPool", "AveragePool")
        self.x = self.run(kind, self.x, **attributes)
        self.side = (self.side - 1) // 2 + 1

    def depthwise(self) -> None:
        factor = self.choose(1, 2)
        self.x = self.unit(self.x, self.channels, self.channels * factor, 3, 1, self.channels)
        self.channels *= factor

    def pad(self) -> None:
        more = self.draw(st.integers(0, 3))
        pads = self.constant(np.array([0, 0, 1, 1, 0, more, 0, 0], dtype=np.int64))
        self.x = self.run("Pad", self.x, pads)
        self.channels, self.side = self.channels + more, self.side + 1

    def window(self) -> None:
        """A pooling or an unpadded convolution whose window may be as large as the map, or larger with its pads."""
        kind = self.choose("Conv", "MaxPool", "AveragePool")
        stride, begin, end = self.choose(1, 2, 3), self.choose(0, 0, 1), self.choose(0, 0, 1, 2)
        ceil = kind != "Conv" and self.draw(st.booleans())
        room = self.side + begin + end
        kernel = self.choose(*{size for size in (2, 3, 5, self.side, room) if max(begin, end) < size <= room})
        dilation = self.choose(1, 2, 3) if kind != "AveragePool" else 1
        dilation = dilation if dilation * (kernel - 1) < room else 1
        free = room - dilation * (kernel - 1) - 1
        side = (-(-free // stride) if ceil else free // stride) + 1
        if (side - 1) * stride >= self.side + begin:  # the last window starts behind the image
            return
        attributes: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        attributes["pads"] = [begin, begin, end, end]
        if kind != "AveragePool":
            attributes["dilations"] = [dilation] * 2
        elif not ceil:
            attributes["count_include_pad"] = self.choose(0, 1)
        if kind == "Conv":
            width = self.width()
            self.x = self.run("Conv", self.x, self.weight(width, self.channels, kernel, kernel), **attributes)
            self.channels = width
        else:
            self.x = self.run(kind, self.x, ceil_mode=int(ceil), **attributes)
        self.side = side

    def reflect(self) -> None:
        """A pad that repeats pixels of the image, cropped again by a convolution."""
        most = min(3, self.side - 1)
        if most < 1:
            return
        pads = self.constant(np.array([0, 0, most, most, 0, 0, most, most], dtype=np.int64))
        padded = self.run("Pad", self.x, pads, mode="reflect")
        kernel, width = 2 * most + 1, self.width()
        self.x = self.run("Conv", padded, self.weight(width, self.channels, kernel, kernel))
        self.channels = width

    def tokens(self) -> None:
        """Attention over the pixels, with a fused projection to q, k and v."""
        heads, dim, n = self.choose(1, 2), 4, self.side**2
        inner = heads * dim
        flat = self.constant(np.array([1, self.channels, n], dtype=np.int64))
        x = self.run("Transpose", self.run("Reshape", self.x, flat), perm=[0, 2, 1])
        normal = self.layer_norm(x, self.channels)
        fused = self.run("MatMul", normal, self.weight(self.channels, 3 * inner))
        fused = self.run("Add", fused, self.vector(3 * inner))
        split = self.constant(np.array([1, n, 3, heads, dim], dtype=np.int64))
        fused = self.run("Transpose", self.run("Reshape", fused, split), perm=[2, 0, 3, 1, 4])
        q, k, v = (self.run("Gather", fused, self.constant(np.int64(i)), axis=0) for i in range(3))
        scores = self.run("MatMul", q, self.run("Transpose", k, perm=[0, 1, 3, 2]))
        weights = self.run("Softmax", self.run("Mul", scores, self.constant(np.float32(dim**-0.5))), axis=-1)
        mixed = self.run("Transpose", self.run("MatMul", weights, v), perm=[0, 2, 1, 3])
        merged = self.run("Reshape", mixed, self.constant(np.array([1, n, inner], dtype=np.int64)))
        x = self.run("Add", x, self.run("MatMul", merged, self.weight(inner, self.channels)))
        shape = self.constant(np.array([1, self.channels, self.side, self.side], dtype=np.int64))
        self.x = self.run("Reshape", self.run("Transpose", x, perm=[0, 2, 1]), shape)

    # The end.

    def model(self) -> onnx.ModelProto:
        """The classifier, with one of several heads."""
        head = self.choose("pool", "mean", "flat", "fixed", "window", "matrix")
        if head == "window":  # VGG's: a convolution over the whole map, a layer behind it
            x = self.run("Relu", self.run("Conv", self.x, self.weight(8, self.channels, self.side, self.side)))
            x, width = self.run("Flatten", x), 8
        elif head == "matrix":  # Caffe2's: a pooling over the whole map, and a shape that is spelt out
            x = self.run("AveragePool", self.x, kernel_shape=[self.side, self.side])
            x = self.run("Reshape", x, self.constant(np.array([1, self.channels], dtype=np.int64)))
            width = self.channels
        elif head == "fixed":
            width = self.channels * self.side**2
            x = self.run("Reshape", self.x, self.constant(np.array([1, width], dtype=np.int64)))
        elif head == "pool":
            x, width = self.run("Flatten", self.run("GlobalAveragePool", self.x)), self.channels
        elif head == "mean":
            x, width = self.run("ReduceMean", self.x, axes=[2, 3], keepdims=0), self.channels
        else:
            x, width = self.run("Flatten", self.x), self.channels * self.side**2
        weight = self.constant(self.rng.normal(size=(CLASSES, width)).astype(np.float32))
        logits = self.run("Gemm", x, weight, self.vector(CLASSES), transB=1)
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, (1, 3, SIDE, SIDE))],
            [helper.make_tensor_value_info(logits, TensorProto.FLOAT, (1, CLASSES))],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


BLOCKS = (
    Builder.plain, Builder.residual, Builder.projected, Builder.squeeze, Builder.dense, Builder.branches,
    Builder.split, Builder.shuffle, Builder.pool, Builder.depthwise, Builder.pad, Builder.tokens,
    Builder.window, Builder.reflect,
)  # fmt: skip


@st.composite
def models(draw: Draw, most: int = 4) -> onnx.ModelProto:
    """A stem, some blocks in any order, a head."""
    builder = Builder(draw)
    builder.plain()
    for block in draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=most)):
        block(builder)
    return builder.model()
