"""The pieces of a network's ``.bin``, as ncnn asks for them while it loads the network.

Layers of ncnn read their weights one after the other, and each knows what it reads. So ncnn itself says where a piece
begins and ends, and no list of layers and their weights is needed here. Four bytes that are zero are a storage tag, or
a weight of one number that is zero; both are the same bytes.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.serving.errors import PoolError
from autotailor.serving.files.network import piece_reader

TAG_BYTES = 4

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Recorded:
    """One piece of a ``.bin``.

    Attributes:
        values: flat, ``[n]``; empty for a tag.
        tagged: whether a tag stands before the piece: whether the piece is a layer's main weight.
    """

    values: Array
    tagged: bool = False

    @property
    def is_tag(self) -> bool:
        """Whether this is a tag."""
        return not len(self.values)


def record_pieces(param: Path, weights: Path) -> tuple[Recorded, ...]:
    """The pieces of a network in single precision, front to back.

    Args:
        param: file of the network.
        weights: its ``.bin``.

    Raises:
        PoolError: ncnn cannot load the network, or leaves bytes of the file unread.
    """
    import ncnn

    content = np.fromfile(weights, np.uint8)
    net, reader = ncnn.Net(), piece_reader([content])
    if net.load_param(str(param)) != 0 or net.load_model(reader) != 0 or sum(reader.asked) != len(content):
        raise PoolError(f"{param}: ncnn cannot load it with {weights.name}; convert the network again")
    parts = np.split(content, np.cumsum(reader.asked)[:-1]) if reader.asked else []
    pieces: list[Recorded] = []
    for part in parts:
        is_tag = len(part) == TAG_BYTES and not part.any()
        after_tag = bool(pieces) and pieces[-1].is_tag
        values = np.empty(0, np.float32) if is_tag else part.view("<f4")
        pieces.append(Recorded(values, after_tag and not is_tag))
    return tuple(pieces)
