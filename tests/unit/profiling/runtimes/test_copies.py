"""How many copies of an operator a replica network holds."""

from hypothesis import given
from hypothesis import strategies as st

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.runtimes.copies import MEMORY_MB, MOST_COPIES, TARGET_US, copies, estimated_us


def conv(channels: int, side: int) -> OperatorFeature:
    shape = (1, channels, side, side)
    return OperatorFeature("Conv", (shape,), (shape,), ((channels, channels, 3, 3),))


@given(st.integers(1, 512), st.integers(1, 56), st.floats(0, 500))
def test_a_long_run_has_at_least_two_copies_more_and_fits_memory_and_number(
    channels: int, side: int, weight_mb: float
) -> None:
    short, long = copies(conv(channels, side), weight_mb)
    more = long - short
    assert short == 1
    assert 2 <= more <= MOST_COPIES
    assert more == 2 or more * weight_mb <= MEMORY_MB
    assert (
        more in (2, MOST_COPIES)
        or abs(more * estimated_us(conv(channels, side)) - TARGET_US) <= TARGET_US
        or ((more + 1) * weight_mb > MEMORY_MB)
    )


def test_small_operators_have_many_copies_and_large_ones_few() -> None:
    small, large = copies(conv(4, 4), 0.001), copies(conv(512, 28), 9.0)
    assert small == (1, 1 + MOST_COPIES)
    assert large == (1, 3)
    assert copies(conv(4, 4), 64.0) == (1, 4)


def test_the_estimate_grows_with_products_and_with_what_is_moved() -> None:
    relu = OperatorFeature("Relu", ((1, 8, 8, 8),), ((1, 8, 8, 8),))
    assert estimated_us(relu) < estimated_us(conv(8, 8)) < estimated_us(conv(16, 8)) < estimated_us(conv(16, 16))
