"""From blocks of runs to the latency of one operator, with what timing costs and what disturbed it taken out."""

import json

import numpy as np
import pytest

from autotailor.profiling import Record
from autotailor.profiling.records.differential import (
    Walk,
    block_latencies,
    estimates,
    kernel_overhead,
    robust,
    steady,
    step_latencies,
)
from autotailor.profiling.records.events import ProgramTimed, parse
from autotailor.profiling.runtimes.base import Program

PROGRAM = Program("a", "", ((4,),), "c9", "c1", (1, 9), sink=True)


def test_fixed_costs_cancel_in_the_differential() -> None:
    latencies = block_latencies(PROGRAM, [5e3 + 2e3, 5e3 + 2e3], [5e3 + 9 * 2e3, 5e3 + 9 * 2e3 + 800])
    assert latencies == pytest.approx([2e-3, 2.1e-3])


def test_the_estimate_survives_outliers() -> None:
    rng = np.random.default_rng(0)
    blocks = rng.normal(1.0, 0.01, 100)
    blocks[:9] += 5
    estimate = robust(blocks, 7)
    assert estimate.latency_ms == pytest.approx(1.0, abs=0.01)
    assert 0.0005 < estimate.standard_error < 0.005


@pytest.mark.parametrize("blocks", [8, 10, 16, 64])
def test_standard_error_covers_what_repetition_shows(blocks: int) -> None:
    rng = np.random.default_rng(1)
    runs = [robust(rng.normal(1.0, 0.1, blocks), 1) for _ in range(4000)]
    spread = np.std([run.latency_ms for run in runs])
    assert np.sqrt(np.mean([run.standard_error**2 for run in runs])) == pytest.approx(spread, rel=0.08)


def test_a_single_block_says_nothing_of_its_error() -> None:
    assert robust([2.0], 1).latency_ms == 2.0
    assert robust([2.0], 1).standard_error == float("inf")


def test_drift_is_taken_out_by_the_anchor() -> None:
    slow = [Record("f", key, (value * 1.5,) * 8, 0.06, 1, 1.0) for key, value in (("anchor", 0.04), ("a", 0.1))]
    fast = [Record("f", key, (value,) * 8, 0.04, 1, 1.0) for key, value in (("anchor", 0.04), ("b", 0.1))]
    known = estimates([*slow, *fast], "anchor")
    assert known["a"].latency_ms == pytest.approx(known["b"].latency_ms)


def test_what_slows_a_whole_walk_down_is_taken_out() -> None:
    rng = np.random.default_rng(0)
    usual = np.geomspace(5e3, 5e6, 40)[:, None]
    noise = rng.normal(1, 0.01, (40, 8))
    noise[3, 5] = 20.0  # an interruption hits one step
    slowness = np.array([1.0, 1.3, 0.9, 1.0, 2.0, 1.0, 1.1, 1.0])
    found = steady((usual * noise * slowness).tolist())
    np.testing.assert_allclose(found / usual, noise * slowness.mean(), rtol=0.02)


def test_steps_too_short_for_the_clock_say_nothing_of_slowness() -> None:
    assert steady([[0.0, 0.0, 0.0]]).tolist() == [[0.0, 0.0, 0.0]]
    found = steady([[0.0, 1e3, 0.0], [5e3, 1e4, 5e3]])
    np.testing.assert_allclose(found, [[0.0, 2e3 / 3, 0.0], [2e4 / 3] * 3])


def test_what_timing_costs_is_taken_off_for_each_kernel() -> None:
    steps = (("a", "x"), ("b", "y"), ("a", "z"), ("gone", "z"))
    network = Program("n", "", ((3, 8, 8),), "z", steps=steps)
    latencies = np.array([[30.0, 30.0], [10.0, 20.0], [34.0, 34.0], [0.0, 0.0]]) * 1e3
    kernels = np.array([1, 3, 2, 0])
    walk = Walk(latencies + 5e3 * kernels[:, None], kernels, latencies.sum(axis=0) + 2e3)
    overhead = kernel_overhead([walk], harness_ms=2e-3)
    assert overhead == pytest.approx(5e-3)
    found = step_latencies(network, walk, overhead)
    assert found.keys() == {"a", "b", "gone"}
    np.testing.assert_allclose(found["a"], [0.032, 0.032])
    np.testing.assert_allclose(found["b"], [0.010, 0.020])
    np.testing.assert_allclose(found["gone"], 0.0, atol=1e-12)


def test_a_step_is_one_kernel_where_the_runner_does_not_say_more() -> None:
    line = {"event": "program", "batch": 0, "key": "n", "passes": 2, "steps": [[5e3, 5e3], [7e3, 7e3]], "long": [1e4]}
    event, of_two = parse(json.dumps(line)), parse(json.dumps({**line, "kernels": [0, 2]}))
    assert isinstance(event, ProgramTimed)
    assert isinstance(of_two, ProgramTimed)
    assert Walk.of(event).kernels.tolist() == [1, 1]
    assert Walk.of(of_two).kernels.tolist() == [0, 2]


def test_one_disturbed_network_does_not_change_what_timing_costs() -> None:
    rng = np.random.default_rng(0)
    networks = []
    for place in range(9):
        latencies = rng.uniform(1e4, 1e6, (20, 1)) * rng.normal(1, 0.001, 8)
        slow = 2e6 if place == 4 else 0.0
        networks.append(Walk(latencies + 5e3, np.ones(20, dtype=np.int64), latencies.sum(axis=0) + slow))
    assert kernel_overhead(networks, 0.0) == pytest.approx(5e-3, abs=5e-4)
