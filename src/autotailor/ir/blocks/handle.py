"""Handles: what inside a block a variable can set.

A *ratio* handle makes its atoms a ratio of a width: of the block's input or output (expand ratio), or of a dimension
of its own (V scale: value width over key width). An *absolute* handle makes the atoms' size the choice itself (kernel
size, number of heads). Templates offer them by the kind of variable they become; ``proposal.py`` treats all alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotailor.ir.dimensions.dimension import Atom, Dimension

EXPAND_RATIO = "expand_ratio"
KERNEL_SIZE = "kernel_size"
HEADS = "heads"
V_SCALE = "v_scale"
WIDTH = "width"


@dataclass(frozen=True)
class Handle:
    """Something inside a block that a variable can set.

    Attributes:
        atoms: sizes that change together; those of an absolute handle have one meta size.
        relative_to: ``in`` or ``out``, the block's width that a ratio multiplies; another dimension, in the atoms'
            own unit; or None where the choice is the size itself.
        least: smallest size that an absolute handle can take.
        step: sizes of an absolute handle are the meta size less a multiple of it (2 for kernels, which are
            cropped on both sides).
    """

    atoms: tuple[Atom, ...]
    relative_to: str | Dimension | None
    least: int = 1
    step: int = 1

    def allows(self, size: float) -> bool:
        """Whether an absolute handle can take a size."""
        meta = self.atoms[0].meta
        return int(size) == size and self.least <= size <= meta and (meta - int(size)) % self.step == 0

    def sizes(self) -> tuple[int, ...]:
        """Every size that an absolute handle can take, rising."""
        return tuple(size for size in range(self.least, self.atoms[0].meta + 1) if self.allows(size))
