"""How the file that a network came from takes its image, where that is not [n, channels, height, width] in float32.

The SuperNet always takes float32, channels first; a signal is a map of height 1. An export has a second ONNX file that
takes what the given file took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import onnx

HEIGHT = "autotailor:height"
"""Name of the number of the axis that a signal lacks."""
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True)
class Given:
    """The image that a given file takes.

    Attributes:
        channels_last: [n, height, width, 3], as TensorFlow has it.
        is_bytes: whole numbers from 0 to 255; the network scales them itself.
        is_series: a signal [n, channels, length].
    """

    channels_last: bool = False
    is_bytes: bool = False
    is_series: bool = False

    def __bool__(self) -> bool:
        return self.channels_last or self.is_bytes or self.is_series

    def _axes(self, axes: Sequence[Any]) -> list[Any]:
        """The given file's axes, of ``[n, channels, height, width]``."""
        kept = [0, 1, 3] if self.is_series else TO_LAST if self.channels_last else range(4)
        return [axes[axis] for axis in kept]

    def image(self, shape: Sequence[int]) -> str:
        """The image in words, such as ``uint8 [1, 64, 64, 3]``, from the SuperNet's ``[1, 3, 64, 64]``."""
        return f"{'uint8' if self.is_bytes else 'float32'} {self._axes(shape)}"

    def taken(self, images: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        """The SuperNet's images ``[n, 3, h, w]`` as the given file takes them; bytes are rounded."""
        arranged = images[:, :, 0] if self.is_series else images.transpose(TO_LAST) if self.channels_last else images
        kind = np.uint8 if self.is_bytes else np.float32
        return np.ascontiguousarray((arranged.round().clip(0, 255) if self.is_bytes else arranged).astype(kind))

    def seen(self, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The SuperNet's images with what the given file loses of them."""
        return images.round().clip(0, 255) if self.is_bytes else images

    def restored(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """A copy of an ONNX model of the network that takes the given file's image, by steps in front of it."""
        import onnx
        from onnx import TensorProto, helper

        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        image = copy.graph.input[0]
        name, sizes = image.name, [axis.dim_value for axis in image.type.tensor_type.shape.dim]
        steps: list[tuple[str, dict[str, Any]]] = [("Cast", {"to": TensorProto.FLOAT})] * self.is_bytes
        steps += [("Transpose", {"perm": TO_FIRST})] * self.channels_last
        steps += [("Unsqueeze", {})] * self.is_series
        names = [name, *(f"{name}:{kind}" for kind, _ in steps)]
        for node in copy.graph.node:
            node.input[:] = [names[-1] if read == name else read for read in node.input]
        nodes = [
            helper.make_node(kind, [before, *([HEIGHT] if kind == "Unsqueeze" else [])], [after], after, **attributes)
            for (kind, attributes), before, after in zip(steps, names, names[1:], strict=False)
        ]
        if self.is_series:
            copy.graph.initializer.append(helper.make_tensor(HEIGHT, TensorProto.INT64, [1], [2]))
        body = [*nodes, *copy.graph.node]
        del copy.graph.node[:]
        copy.graph.node.extend(body)
        kind = TensorProto.UINT8 if self.is_bytes else TensorProto.FLOAT
        image.CopyFrom(helper.make_tensor_value_info(name, kind, self._axes(sizes)))
        onnx.checker.check_model(copy, full_check=True)
        return copy
