"""How long a runner may take."""

from autotailor.profiling.measuring.pace import (
    FACTOR,
    LOAD_SECONDS,
    SLOWEST_MACS_M,
    allowed_seconds,
    planned_seconds,
)
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.runner.loop import SETTLE_FACTOR

REPLICA = Program("a", "", ((4,),), "c9", "c1", (1, 9), macs_m=100.0)
NETWORK = Program("n", "", ((4,),), "z", macs_m=200.0)


def test_few_passes_of_large_programs_take_their_work_and_many_of_small_ones_the_time_given() -> None:
    settings = {"runs": 3, "walks": 1, "settle_ms": 500.0}
    one_pass = 3 * 2 * (100 + 200) / SLOWEST_MACS_M + SETTLE_FACTOR * 0.5  # only the network settles
    loading = 2 * LOAD_SECONDS
    assert planned_seconds([REPLICA, NETWORK], 1.0, 4, settings) == loading + 4 * one_pass
    assert planned_seconds([REPLICA, NETWORK], 1000.0, 4, settings) == loading + 1000
    assert planned_seconds([REPLICA], 0.0, 1, {}) == LOAD_SECONDS + 100 / SLOWEST_MACS_M


def test_a_runner_is_given_many_times_its_plan_and_at_least_the_minutes_of_the_configuration() -> None:
    assert allowed_seconds(100.0, 1.0) == FACTOR * 100
    assert allowed_seconds(1.0, 3.0) == 180
