"""The shared file holds what members take, once."""

from __future__ import annotations

import numpy as np

from autotailor.pool.layout import lay_out
from autotailor.pool.plan import Cut, Planned, StorageTag, Vector
from autotailor.pool.shared import Shared
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
