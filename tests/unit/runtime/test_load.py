"""The load model, against the sum of squares that it claims to minimise."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.runtime import LoadModel, PoolError
from autotailor.runtime.load import FORGETTING, PRIOR

COMPUTE, MEMORY = np.array([9.0, 1.0, 0.5]), np.array([1.0, 4.0, 1.0])


def seen(model: LoadModel, splits: list[np.ndarray], slowdown: np.ndarray, waiting: float = 0.0) -> LoadModel:
    for split in splits:
        cpu = float(split @ slowdown)
        model = model.observed(split, cpu * (1 + waiting), cpu)
    return model


def test_the_recursion_minimises_the_weighted_squares() -> None:
    rng, model = np.random.default_rng(0), LoadModel()
    rows, values, weights, ratio = [*np.eye(3)], [1.0, 1.0, 1.0], [PRIOR] * 3, 1.0
    for _ in range(25):
        split = rng.uniform(0.1, 5, 3)
        cpu = float(split @ [1.4, 2.2, 1.0]) * rng.uniform(0.9, 1.1)
        model = model.observed(split, cpu, cpu)
        ratio = FORGETTING * ratio + (1 - FORGETTING) * cpu / split.sum()
        weights = [FORGETTING * weight for weight in weights] + [1.0] + [(1 - FORGETTING) * PRIOR] * 3
        rows += [split / split.sum(), *np.eye(3)]
        values += [cpu / split.sum(), ratio, ratio, ratio]
        root = np.sqrt(weights)
        expected = np.linalg.lstsq(np.array(rows) * root[:, None], np.array(values) * root, rcond=None)[0]
        assert model.slowdown == pytest.approx(expected, rel=1e-9)


def test_two_members_tell_the_classes_apart() -> None:
    model = seen(LoadModel(), [COMPUTE, MEMORY] * 30, np.array([1.05, 2.0, 1.0]))
    assert model.slowdown[1] / model.slowdown[0] > 1.6
    both = np.array([COMPUTE, MEMORY])
    assert model.cpu_ms(both) == pytest.approx(both @ [1.05, 2.0, 1.0], rel=0.02)


def test_one_member_alone_leaves_one_ratio_for_all() -> None:
    model = seen(LoadModel(), [COMPUTE] * 40, np.full(3, 1.7))
    assert model.cpu_ms(MEMORY[None])[0] == pytest.approx(1.7 * MEMORY.sum(), rel=0.01)


def test_ten_inferences_after_a_step_are_enough() -> None:
    model = seen(LoadModel(), [COMPUTE] * 40, np.ones(3))
    model = seen(model, [COMPUTE] * 10, np.full(3, 3.0))
    assert model.cpu_ms(COMPUTE[None])[0] == pytest.approx(3 * COMPUTE.sum(), rel=0.15)


def test_waiting_is_no_slowdown() -> None:
    model = seen(LoadModel(), [COMPUTE] * 40, np.ones(3), waiting=1.0)
    assert model.cpu_ms(COMPUTE[None])[0] == pytest.approx(COMPUTE.sum(), rel=0.01)
    assert model.waiting == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(("wall", "cpu"), [(0.0, 1.0), (1.0, 0.0), (float("nan"), 1.0)])
def test_impossible_times_are_refused(wall: float, cpu: float) -> None:
    with pytest.raises(PoolError, match="positive times"):
        LoadModel().observed(COMPUTE, wall, cpu)
