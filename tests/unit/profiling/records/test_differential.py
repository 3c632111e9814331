import numpy as np
import pytest

from autotailor.profiling import Record
from autotailor.profiling.measuring.profiler import make_batches
from autotailor.profiling.records.differential import block_latencies, estimates, robust
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


def test_batches_are_bounded_in_number_memory_and_work() -> None:
    small = [Program(str(i), "", (), "c2", memory_mb=1.0) for i in range(40)]
    large = [Program(f"l{i}", "", (), "c2", memory_mb=700.0) for i in range(3)]
    slow = [Program(f"s{i}", "", (), "c2", macs_m=3000.0) for i in range(5)]
    batches = make_batches([*small, *large, *slow], 0.1)
    assert [program for batch in batches for program in batch.programs] == [*small, *large, *slow]
    assert max(len(batch.programs) for batch in batches) <= 16
    assert max(sum(p.memory_mb for p in batch.programs) for batch in batches) <= 1024
    assert max(sum(p.macs_m for p in batch.programs) for batch in batches) <= 8000
