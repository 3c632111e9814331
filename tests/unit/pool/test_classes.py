"""Latency by class of operator."""

import pytest

from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.pool.classes import Rates, moved, scaled
from autotailor.serving import PoolError


def conv(inputs: int, outputs: int, side: int, group: int = 1) -> OperatorFeature:
    weights = ((outputs, inputs // group, 3, 3), (outputs,))
    attributes = freeze_attributes({"group": group, "kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (1, 1)})
    return OperatorFeature("Conv", ((1, inputs, side, side),), ((1, outputs, side, side),), weights, attributes)


def relu(size: int) -> OperatorFeature:
    return OperatorFeature("Relu", ((1, size),), ((1, size),))


def test_a_machine_of_known_rates_is_found_and_its_operators_split() -> None:
    """The machine computes 4e6 MACs and moves 1e6 bytes in a millisecond, and takes 0.01 ms to start an operator."""
    dense = [conv(width, width, 8) for width in (32, 48, 64)]
    deep = [conv(width, width, 8, width) for width in (128, 256)]
    plain = [relu(size) for size in (100_000, 200_000, 300_000)]
    tiny = [relu(size) for size in (1, 2, 3)]
    latencies = {f.id: 0.01 + 64 * 9 * f.inputs[0][1] ** 2 / 4e6 for f in dense}
    latencies |= {f.id: 0.01 + moved(f) / 1e6 for f in (*deep, *plain)} | {f.id: 0.01 for f in tiny}
    operators = [*dense, *deep, *plain, *tiny]
    rates = Rates.of(operators, latencies)
    assert rates.fixed_ms == pytest.approx(0.01)
    assert rates.macs_per_ms == pytest.approx(4e6, rel=0.1)
    assert rates.bytes_per_ms == pytest.approx(1e6, rel=0.1)
    compute, memory, fixed = rates.split_all(operators, latencies)
    assert compute + memory + fixed == pytest.approx(sum(latencies.values()))
    assert compute == pytest.approx(sum(latencies[f.id] for f in dense) - 3 * rates.fixed_ms)
    assert fixed <= len(operators) * rates.fixed_ms
    for each in (*deep, *plain):
        assert rates.split(each, latencies[each.id])[0] == 0.0


def test_an_operator_as_short_as_the_start_is_all_fixed() -> None:
    rates = Rates(0.01, 1e6, 1e6)
    assert rates.split(conv(64, 64, 8), 0.004) == (0.0, 0.0, 0.004)


def test_a_split_keeps_its_shares_at_another_latency() -> None:
    assert scaled((0.2, 0.1, 0.1), 0.8) == pytest.approx((0.4, 0.2, 0.2))


def test_without_multiplications_everything_is_memory() -> None:
    operators = [relu(1000 * n) for n in range(1, 9)]
    latencies = {f.id: 0.01 * n for n, f in enumerate(operators, 1)}
    compute, memory, fixed = Rates.of(operators, latencies).split_all(operators, latencies)
    assert compute == 0
    assert memory > fixed > 0


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(PoolError, match="the table of operators is empty"):
        Rates.of([], {})
