"""Batches are divided into portions between two looks at the device."""

from autotailor.profiling.records.batch import Batch, portions


def test_portions_keep_the_order_and_lose_nothing() -> None:
    batches = [Batch((), seconds) for seconds in (40.0, 15.0, 10.0, 90.0, 1.0)]
    parts = portions(batches, 60.0)
    assert [batch for part in parts for batch in part] == batches
    assert [len(part) for part in parts] == [2, 1, 1, 1]
    assert portions([]) == []
