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


def tiny_pool(folder: Path, precision: str = "fp32", seed: int = 0) -> TinyPool:
    """Writes the pool into a folder, which is made."""
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
    index = Index("tiny", "host", 1, options, precision, *files, tuple(members))
    (folder / INDEX).write_text(index.text(), encoding="utf-8")
    return TinyPool(folder, weights)
