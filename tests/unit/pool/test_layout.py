"""The shared file holds what members take, once."""

from pathlib import Path

import numpy as np
import pytest

from autotailor.pool.layout import Shared, lay_out
from autotailor.pool.plan import Cut, Planned, StorageTag, Vector
from autotailor.serving import PoolError
from autotailor.serving.files import Norms, Slice, Tag


def test_members_share_what_they_take_and_nothing_else_is_stored() -> None:
    rng = np.random.default_rng(0)
    tensors = {"w": rng.normal(size=(10, 6)).astype(np.float32), "unused": np.zeros((99, 99), np.float32)}
    rows, columns = np.array([0, 1, 2, 6, 7]), np.arange(1, 5)
    scale = np.array([1, 2, 3], np.float32)
    plans: dict[str, list[Planned]] = {
        "narrow": [StorageTag(), Cut("w", (0, 1), (rows[:3], columns[::-1][:2]), scale), Vector(scale)],
        "wide": [StorageTag(), Cut("w", (0, 1), (rows, columns)), Vector(scale)],
        "turned": [Cut("w", (1, 0), (columns, rows[:2]))],
    }
    shared = Shared()
    pieces = lay_out(plans, tensors, shared)
    weights, norms = shared.stored
    assert pieces["wide"][1] == Slice(0, (5, 4), (((0, 5),), ((0, 4),)))
    assert pieces["narrow"][1] == Slice(0, (5, 4), (((0, 3),), ((3, 4), (2, 3))), 0, 1)
    assert pieces["turned"][0] == Slice(128, (4, 2), (((0, 4),), ((0, 2),)))
    assert pieces["wide"][0] == Tag(0)
    assert pieces["wide"][2] == pieces["narrow"][2] == Norms(0, 3)
    w = tensors["w"]
    expected = [w[:3, [4, 3]] * scale[:, None], w[np.ix_(rows, columns)], w.T[1:5, :2]]
    for name, place, values in zip(plans, (1, 1, 0), expected, strict=True):
        np.testing.assert_array_equal(pieces[name][place].read(weights, norms), values.reshape(-1))


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
