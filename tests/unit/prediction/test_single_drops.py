"""Derivatives of functions that are made of single drops, against functions of other drops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction.functions import groups
from autotailor.prediction.single_drops import by_targets


def test_the_columns_of_other_drops_are_those_of_the_derivative(world) -> None:
    """The columns are linear in the drops, so that the derivative tells them exactly."""
    space, random = world.net.space, np.random.default_rng(2)
    seen, rows = world.outcomes(5).observations, stack(sample_distinct(world.net.space, 25, random))
    moved = random.normal(size=len(seen.indices))
    offered = [groups(space, observed.drops(), world.cost) for observed in (seen, _with(seen, moved))]
    made_of_drops = 0
    for before, after in zip(*offered, strict=True):
        found = by_targets(before, space, rows, seen.indices)
        change = after.columns(space, rows) - before.columns(space, rows)
        assert len(found) in (0, len(before.functions))
        made_of_drops += len(found)
        np.testing.assert_allclose((found @ moved).T if len(found) else 0.0 * change, change, atol=1e-9)
    assert made_of_drops > 1


def _with(seen, moved):
    """Observations whose log-odds have moved."""
    first, *others = seen.parts
    return replace(seen, parts=(replace(first, target=first.target + moved), *others))
