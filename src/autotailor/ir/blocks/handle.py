"""Handles: what inside a block a variable can set.

The choice of a *ratio* handle is a ratio of a width: of the block's input or output (expand ratio), or of another
dimension (V scale: value width over key width). The choice of an *absolute* handle is the size itself (kernel size,
number of heads). A template offers handles by the kind of variable that a handle becomes; ``proposal.py`` treats all
kinds alike.
"""

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
        atoms: sizes that change together; the atoms of an absolute handle have one meta size.
        relative_to: the width that a ratio multiplies: ``in`` or ``out`` for an end of the block, or another dimension
            in the unit of the atoms; None for an absolute handle.
        least: smallest size that an absolute handle can take.
        step: an absolute handle can take the meta size less multiples of the step (2 for kernels, which are cropped on
            both sides).
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
