"""A tiny pool for tests: a convolution with ReLU, the mean of each channel, and a fully connected layer.

The members take slices of the same two tensors, with scales and biases of their own. ``TinyPool.logits`` computes with
NumPy what a member must return.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import file_digest
from autotailor.pool.layout import Shared
from autotailor.serving.files import INDEX, MEMBERS, Index, Member, Norms, Slice, Tag, pieces_text
from autotailor.serving.files.exits import Confidence, Exit
from autotailor.serving.files.index import PRECISIONS

Array = npt.NDArray[Any]
CLASSES = 4
WIDEST = 8
CHANNELS = (((0, 4),), ((0, 2), (4, 8)), ((0, 8),))
"""Ranges of the channels that each member takes."""
SIDES = (8, 8, 12)
"""Sides of the members' images."""
SPLITS = ((0.01, 0.005, 0.005), (0.02, 0.01, 0.005), (0.04, 0.02, 0.005))
"""Milliseconds in each class of operators, for each member."""

PARAM = """7767517
4 4
Input in0 0 1 in0 0={side} 1={side} 2=3
Convolution conv 1 1 in0 1 0={width} 1=3 4=1 5=1 6={weights} 9=1
Pooling mean 1 1 1 2 0=1 4=1
InnerProduct fc 1 1 2 out0 0={classes} 1=1 2={products}
"""


@dataclass(frozen=True, eq=False)
class TinyPool:
    """The pool, and what its members compute.

    Attributes:
        folder: of the pool.
        weights: for each member its convolution's weight and bias, and those of its fully connected layer.
    """

    folder: Path
    weights: dict[str, tuple[Array, Array, Array, Array]]

    def logits(self, member: str, image: Array) -> Array:
        """Logits ``[4]`` of an image ``[3, s, s]``."""
        weight, bias, matrix, shift = self.weights[member]
        padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
        found = np.einsum("ochw,cyxhw->oyx", weight, windows) + bias[:, None, None]
        logits: Array = matrix @ np.maximum(found, 0).mean((1, 2)) + shift
        return logits


def tiny_pool(folder: Path, precision: str = "fp32", seed: int = 0, task: str = "") -> TinyPool:
    """Writes the pool into a folder, which is made; ``task`` is that of its networks (``Index.task``)."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(0, 0.3, (WIDEST, 3, 3, 3)).astype(PRECISIONS[precision]).astype(np.float32)
    matrix = rng.normal(0, 0.5, (CLASSES, WIDEST)).astype(PRECISIONS[precision]).astype(np.float32)
    shift = rng.normal(0, 0.5, CLASSES).astype(np.float32)
    shared = Shared(precision)
    (folder / MEMBERS).mkdir(parents=True)
    offsets = shared.tensor("kernel", kernel), shared.tensor("matrix", matrix)
    members, weights = [], {}
    for number, (channels, side, split) in enumerate(zip(CHANNELS, SIDES, SPLITS, strict=True)):
        name = f"member_{number:02}"
        taken = np.concatenate([np.arange(*pair) for pair in channels])
        scale = rng.uniform(0.5, 2, len(taken)).astype(np.float32)
        bias = rng.normal(0, 0.3, len(taken)).astype(np.float32)
        ends = (0, CLASSES), (0, 3)
        pieces = (
            Tag(0),
            Slice(offsets[0], kernel.shape, (channels, *((end,) for end in (ends[1],) * 3)), shared.vector(scale), 1),
            Norms(shared.vector(bias), len(bias)),
            Tag(0),
            Slice(offsets[1], matrix.shape, ((ends[0],), channels)),
            Norms(shared.vector(shift), CLASSES),
        )
        param, slices = (folder / MEMBERS / f"{name}.{kind}" for kind in ("param", "slices"))
        sizes = {"side": side, "width": len(taken), "weights": len(taken) * 27}
        param.write_text(PARAM.format(classes=CLASSES, products=CLASSES * len(taken), **sizes), encoding="utf-8")
        slices.write_text(pieces_text(pieces), encoding="utf-8")
        members.append(
            Member(
                name=name, accuracy=90.0 + number, split_ms=split, peak_bytes=10_000 * (number + 1),
                energy_mj=0.1 * (number + 1), input="in0", shape=(3, side, side), output="out0", classes=CLASSES,
                param=file_digest(param), slices=file_digest(slices),
            )
        )  # fmt: skip
        weights[name] = (kernel[taken] * scale[:, None, None, None], bias, matrix[:, taken], shift)
    files = shared.write(folder)
    options = (("use_fp16_arithmetic", False), ("use_fp16_packed", False), ("use_fp16_storage", False))
    index = Index("tiny", "host", 1, options, precision, *files, tuple(members), task=task)
    (folder / INDEX).write_text(index.text(), encoding="utf-8")
    return TinyPool(folder, weights)


EXITS = ("stage1", "stage2")
EARLY_PARAM = """7767517
15 17
Input in0 0 1 in0 0={side} 1={side} 2=3
Convolution conv1 1 1 in0 a 0={width} 1=3 4=1 5=1 6={first} 9=1
Split split1 1 2 a a0 a1
Pooling mean1 1 1 a0 p1 0=1 4=1
InnerProduct fc1 1 1 p1 out0 0=4 1=1 2={products}
Convolution conv2 1 1 a1 b 0={width} 1=3 4=1 5=1 6={later} 9=1
Split split2 1 2 b b0 b1
Pooling mean2 1 1 b0 p2 0=1 4=1
InnerProduct fc2 1 1 p2 out1 0=4 1=1 2={products}
Convolution conv3 1 1 b1 c 0={width} 1={kernel} 4={padding} 5=1 6={last} 9=1
Pooling mean3 1 1 c p3 0=1 4=1
InnerProduct fc3 1 1 p3 out2 0=4 1=1 2={products}
"""


@dataclass(frozen=True, eq=False)
class EarlyPool:
    """A pool whose only member has two exits, behind its first two convolutions of three.

    Attributes:
        folder: of the pool.
        weights: for each answer the weight and bias of the convolution before it, and of its fully connected layer.
        side: of its images.
    """

    folder: Path
    weights: tuple[tuple[Array, Array, Array, Array], ...]
    side: int

    def picture(self, seed: int) -> Array:
        """A picture."""
        return np.random.default_rng(seed).normal(size=(3, self.side, self.side)).astype(np.float32)

    def logits(self, exit_: int, image: Array) -> Array:
        """Logits ``[4]`` of an exit, the own answer last."""
        for weight, bias, matrix, shift in self.weights[: exit_ + 1]:
            size = weight.shape[-1]
            padded = np.pad(image, ((0, 0), *((size // 2, size // 2),) * 2))
            windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
            found = np.tensordot(weight, windows, ((1, 2, 3), (0, 3, 4))) + bias[:, None, None]
            image = np.maximum(found, 0)
            logits: Array = matrix @ image.mean((1, 2)) + shift
        return logits


def early_pool(folder: Path, kind: str = "probability", side: int = 12, width: int = 8, kernel: int = 3) -> EarlyPool:
    """Writes the pool into a folder, which is made; its weights are pieces of ``norms.bin``.

    Args:
        folder: of the pool.
        kind: of confidence.
        side: of its images.
        width: channels of the convolutions.
        kernel: of the last one, whose time ``pool.txt`` tells as if it were 3.
    """
    rng = np.random.default_rng(2)
    shared, pieces, weights = Shared(), list[Any](), []
    (folder / MEMBERS).mkdir(parents=True)
    for channels, across in ((3, 3), (width, 3), (width, kernel)):
        shapes = (width, channels, across, across), (width,), (CLASSES, width), (CLASSES,)
        scales = (2 / channels) ** 0.5 / across, 0.1, 2.0, 0.5
        own = [rng.normal(0, scale, shape).astype(np.float32) for scale, shape in zip(scales, shapes, strict=True)]
        norms = [Norms(shared.vector(array), array.size) for array in own]
        pieces += [Tag(0), norms[0], norms[1], Tag(0), norms[2], norms[3]]
        weights.append(tuple(own))
    sizes = {
        "first": width * 27,
        "later": width * width * 9,
        "last": (width * kernel) ** 2,
        "products": CLASSES * width,
    }
    param, slices = (folder / MEMBERS / f"early.{ending}" for ending in ("param", "slices"))
    text = EARLY_PARAM.format(side=side, width=width, kernel=kernel, padding=kernel // 2, **sizes)
    head = f"7767517\n{len(text.splitlines()) - 2} {sum(int(line.split()[3]) for line in text.splitlines()[2:])}"
    param.write_text("\n".join([head, *text.splitlines()[2:], ""]), encoding="utf-8")
    slices.write_text(pieces_text(pieces), encoding="utf-8")
    reach = (0.2, 0.4)
    exits = tuple(Exit(name, 80.0 + at, reach[at], f"out{at}") for at, name in enumerate(EXITS))
    thresholds = (("guaranteed", (0.0, None)), ("60%", (None, 0.0)), ("late", (1.5, 1.5)))
    member = Member(
        name="early", accuracy=90.0, split_ms=(0.3, 0.2, 0.1), peak_bytes=10_000, energy_mj=0.1, input="in0",
        shape=(3, side, side), output="out2", classes=CLASSES, param=file_digest(param), slices=file_digest(slices),
        exits=exits, thresholds=thresholds,
    )  # fmt: skip
    files = shared.write(folder)
    options = (("use_fp16_arithmetic", False), ("use_fp16_packed", False), ("use_fp16_storage", False))
    index = Index("early", "host", 1, options, "fp32", *files, (member,), (), Confidence(kind, "logits"))
    (folder / INDEX).write_text(index.text(), encoding="utf-8")
    return EarlyPool(folder, tuple(weights), side)
