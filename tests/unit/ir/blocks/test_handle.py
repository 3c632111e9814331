"""Handles: the sizes that an absolute handle can take."""

import pytest

from autotailor.ir.blocks.handle import Handle
from autotailor.ir.dimensions.dimension import Atom, Kernel

KERNEL = Handle((Kernel("k", 7),), None, least=3, step=2)
HEADS = Handle((Atom("heads", 4),), None)


def test_kernels_lose_a_ring_at_a_time_and_heads_one() -> None:
    assert KERNEL.sizes() == (3, 5, 7)
    assert HEADS.sizes() == (1, 2, 3, 4)


@pytest.mark.parametrize("size", [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3.5, 5.0])
def test_what_is_allowed_is_what_is_listed(size: float) -> None:
    assert KERNEL.allows(size) == (size in KERNEL.sizes())
    assert HEADS.allows(size) == (size in HEADS.sizes())
