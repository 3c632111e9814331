"""Frequencies and temperatures that a runner tells."""

from typing import Any

import pytest

from autotailor.profiling.records.machine_state import MachineState, change


def state(*khz: float, celsius: tuple[float, ...] = ()) -> MachineState:
    zones = {f"zone{i}": value for i, value in enumerate(celsius)}
    return MachineState({str(i): value for i, value in enumerate(khz)}, zones)


@pytest.mark.parametrize("said", [None, [], "hot", {}, {"khz": [1]}, {"khz": {"0": "fast", "1": None, "2": 1e300}}])
def test_what_makes_no_sense_is_left_out(said: Any) -> None:
    assert MachineState.from_line(said) == MachineState({}, {})


def test_numbers_are_read_by_core_and_zone() -> None:
    said = {"khz": {"0": 1_800_000, "1": True}, "celsius": {"cpu": 41.5}}
    assert MachineState.from_line(said) == MachineState({"0": 1.8e6}, {"cpu": 41.5})


def test_the_slowest_core_and_the_warmest_zone_are_told_from_first_to_last() -> None:
    states = [state(2e6, 1.8e6, celsius=(40, 35)), state(1e6, 3e6, celsius=(71, 90)), state(1.5e6, celsius=(60,))]
    assert change(states) == (
        "slowest core 1.80 GHz before, 1.50 after (from 1.00 to 1.80); "
        "warmest zone 40 °C before, 60 after (from 40 to 90)"
    )


def test_what_the_system_does_not_tell_is_said() -> None:
    told = "slowest core: the system does not tell; warmest zone 40 °C before, 40 after (from 40 to 40)"
    assert change([MachineState({}, {"cpu": 40.0})]) == told
