"""The files that members share, while they are made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotailor.pool.shared import Shared
from autotailor.serving import PoolError


def test_what_is_equal_is_stored_once_and_all_is_aligned(tmp_path: Path) -> None:
    shared = Shared()
    first, second = np.arange(5, dtype=np.float32), np.arange(7, dtype=np.float32)
    offsets = [shared.vector(values) for values in (first, second, first.copy())]
    assert offsets == [0, 64, 0]
    assert [shared.tensor("a", second), shared.tensor("b", first), shared.tensor("a", second)] == [0, 64, 0]
    weights, norms = shared.write(tmp_path)
    assert (
        (weights.bytes, norms.bytes) == (128, 128) == tuple(path.stat().st_size for path in sorted(tmp_path.iterdir()))
    )
    for stored, name in zip(shared.stored, ("weights.bin", "norms.bin"), strict=True):
        np.testing.assert_array_equal(stored, np.fromfile(tmp_path / name, "<f4"))


def test_a_value_that_half_precision_cannot_hold_is_named() -> None:
    shared = Shared("fp16")
    shared.tensor("small", np.array([6e4], np.float32))
    with pytest.raises(PoolError, match=r"tensor large has a value of 7e\+04, which fp16 cannot hold"):
        shared.tensor("large", np.array([7e4], np.float32))


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(PoolError, match=r"pool\.precision is int8, expected one of fp32, fp16"):
        Shared("int8")
