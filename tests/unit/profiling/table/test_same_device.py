"""A LUT of another device is refused with what differs."""

import pytest

from autotailor.profiling import LUT, Fingerprint, ProfilingError
from autotailor.profiling.table.same_device import SHOWN, check_same_device, differing_facts
from lut_tables import DEVICE, TABLE


def test_the_same_device_and_an_empty_table_pass() -> None:
    check_same_device(TABLE, DEVICE, "host")
    check_same_device(LUT(()), DEVICE, "host")


def test_another_device_is_refused_with_the_differences() -> None:
    other = Fingerprint({**DEVICE.facts, "hardware": {"cpu": "y"}})
    with pytest.raises(ProfilingError, match=r"device host: .*\(hardware.cpu was 'x', is 'y'\).*--forcerun profile"):
        check_same_device(TABLE, other, "host")


def test_many_differences_are_counted() -> None:
    other = Fingerprint({f"fact{i}": i for i in range(10)})
    expected = len(differing_facts(DEVICE.facts, other.facts)) - SHOWN
    assert expected == 10 + 3 - SHOWN
    with pytest.raises(ProfilingError, match=f"and {expected} more"):
        check_same_device(TABLE, other, "host")


def test_facts_that_one_side_lacks_differ() -> None:
    assert differing_facts({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 4}, "e": 5}) == [
        "a.c was 2, is 4", "d was 3, is None", "e was None, is 5",
    ]  # fmt: skip
