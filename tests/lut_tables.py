"""A device, a table of two operators and one record of it, which tests of tables and stores share."""

import math

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUT, Fingerprint, LUTRow, Record, Store

ANCHOR, RELU = (OperatorFeature("Relu", ((1, width),), ((1, width),)) for width in (1, 2))
DEVICE = Fingerprint({"hardware": {"cpu": "x"}, "runtime": {"name": "ncnn"}, "anchor": ANCHOR.id})
TABLE = LUT(
    tuple(LUTRow(f, DEVICE.id, ms, ms / 50, 9, workspace_mb=0.5) for f, ms in ((ANCHOR, 1.0), (RELU, 2.0))), DEVICE
)
ROW, VISIT = TABLE.rows[1], Record(DEVICE.id, RELU.id, (0.5,) * 8, 1.0, 10, 0.5)


def usable(store: Store) -> None:
    """Fails where a store returns rows that make no sense to runs and commands."""
    for known in store.devices():
        rows = list(store.lut(known.fingerprint.id))
        assert all(math.isfinite(row.standard_error / row.latency_ms) and row.latency_ms > 0 for row in rows)
        assert len(rows) == known.operators
