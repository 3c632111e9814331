"""The LUT store: nothing lost, nothing twice, whoever writes and whenever they die."""

import math
import os
import random
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lut_tables
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUT, Fingerprint, LUTError, LUTRow, Record, Store
from autotailor.profiling.table.database import FILE
from lut_tables import RELU, ROW, TABLE, VISIT, usable


def relu(width: int) -> OperatorFeature:
    return OperatorFeature("Relu", ((1, width),), ((1, width),))


ANCHOR = relu(1)
DEVICE = Fingerprint({"hardware": {"cpu": "x"}, "anchor": ANCHOR.id})
OTHER = Fingerprint({"hardware": {"cpu": "y"}, "anchor": ANCHOR.id})


def record(feature: OperatorFeature, latency: float, anchor_ms: float = 1.0, device: Fingerprint = DEVICE) -> Record:
    return Record(device.id, feature.id, (latency,) * 8, anchor_ms, 10, 0.5)


def filled(folder: Path) -> Store:
    store = Store(folder)
    store.register(DEVICE, [ANCHOR, relu(2), relu(3)])
    store.append([record(ANCHOR, 1.0), replace(record(relu(2), 0.1 + 0.2), resident_weight_mb=0.25)])
    return store


def test_records_come_back_in_order_and_by_device(tmp_path: Path) -> None:
    store = filled(tmp_path / "new")
    store.register(OTHER, [relu(2)])
    theirs, mine = record(relu(2), 7.0, device=OTHER), record(relu(2), 0.5)
    store.append([theirs, mine])
    again = Store(tmp_path / "new")
    assert again.records(OTHER.id) == [theirs]
    assert [r.blocks[0] for r in again.records(DEVICE.id)] == [1.0, 0.1 + 0.2, 0.5]
    assert {d.fingerprint.id: d.operators for d in again.devices()} == {DEVICE.id: 2, OTHER.id: 1}


def test_a_lut_is_an_export_of_the_rows_asked_for(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.append([record(relu(3), 2.0)])
    lut = store.lut(DEVICE.id, [relu(3)])
    assert [row.feature for row in lut] == [relu(3), ANCHOR]
    row = store.lut(DEVICE.id, [relu(2)]).rows[0]
    assert (row.latency_ms, row.resident_weight_mb, row.energy_mj) == (0.1 + 0.2, 0.25, None)
    assert row.measured_at > "2020"
    assert row.measured_by
    everything = store.lut(DEVICE.id)
    assert len(everything) == 3
    everything.write(tmp_path / "lut.csv")
    assert LUT.read(tmp_path / "lut.csv") == everything


def test_what_is_not_known_is_named(tmp_path: Path) -> None:
    store = filled(tmp_path)
    with pytest.raises(LUTError, match=f"2 of 3 operators are not measured.*first {relu(3).id}"):
        store.lut(DEVICE.id, [relu(2), relu(3), relu(4)])
    with pytest.raises(LUTError, match=f"nothing is known of device abc; known are: {DEVICE.id}"):
        store.lut("abc")


def test_another_persons_rows_count_until_there_is_a_visit(tmp_path: Path) -> None:
    theirs = LUT(tuple(LUTRow(f, DEVICE.id, ms, ms / 50, 9) for f, ms in ((relu(2), 8.0), (ANCHOR, 2.0))), DEVICE)
    store = Store(tmp_path)
    assert store.merge(theirs) == 2
    assert store.lut(DEVICE.id, [relu(2)]).latencies() == theirs.latencies()
    store.append([record(ANCHOR, 1.0)])  # this machine is twice as fast as theirs was
    assert store.lut(DEVICE.id, [relu(2)]).latencies() == {relu(2).id: 4.0, ANCHOR.id: 1.0}
    store.append([record(relu(2), 5.0)])
    assert store.merge(theirs) == 0
    assert store.lut(DEVICE.id, [relu(2)]).latencies()[relu(2).id] == 5.0


def test_a_table_of_an_unknown_device_is_not_imported(tmp_path: Path) -> None:
    with pytest.raises(LUTError, match="column device"):
        Store(tmp_path).merge(LUT((LUTRow(relu(2), "f", 1.0, 0.1, 3),)))


def test_a_transaction_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = store.records(DEVICE.id)
    with pytest.raises(LUTError, match="FOREIGN KEY"):
        store.append([record(relu(3), 1.0), record(relu(9), 1.0)])
    assert store.records(DEVICE.id) == before


def write(store: Store, numbers: range, report: int) -> None:
    """What a child process does: one visit of a new operator after the other; says what is stored."""
    for i in numbers:
        store.register(DEVICE, [relu(i)])
        store.append([record(relu(i), float(i))])
        os.write(report, f"{i}\n".encode())


def child(store: Store, numbers: range) -> tuple[int, int]:
    """A process that writes: its id, and where its reports can be read."""
    read, report = os.pipe()
    if (process := os.fork()) == 0:
        try:
            write(store, numbers, report)
        finally:
            os._exit(0)
    os.close(report)
    return process, read


def test_writers_killed_at_random_lose_nothing_they_had_reported(tmp_path: Path) -> None:
    store, rng = Store(tmp_path), random.Random(0)
    reported: set[int] = set()
    for start in range(1000, 9000, 1000):
        process, read = child(store, range(start, start + 1000))
        with open(read) as reports:
            reported.add(int(reports.readline()))
            time.sleep(rng.random() * 0.03)
            os.kill(process, signal.SIGKILL)
            reported |= {int(line) for line in reports if line.endswith("\n")}
        os.waitpid(process, 0)
    found = [int(r.blocks[0]) for r in Store(tmp_path).records(DEVICE.id)]
    assert len(found) == len(set(found))
    assert reported <= set(found)
    assert len(set(found) - reported) <= 8  # stored, killed before it was said


def test_writers_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    children = [child(Store(tmp_path), range(100 * i, 100 * i + 15)) for i in range(1, 4)]
    for process, read in children:
        with open(read) as reports:
            assert len(reports.readlines()) == 15
        os.waitpid(process, 0)
    assert len(Store(tmp_path).records(DEVICE.id)) == 45


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(b"nonsense " * 1000)
    with pytest.raises(LUTError, match="move it away"):
        Store(tmp_path)
    assert path.read_bytes() == b"nonsense " * 1000
    path.unlink()
    filled(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(LUTError, match="schema 99"):
        Store(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LUTError, match=r"profile\.store"):
        Store(tmp_path / "file" / "store")


@pytest.mark.parametrize(
    "bad",
    [
        {"blocks": (math.nan,) * 8},
        {"blocks": ()},
        {"anchor_ms": 0.0},
        {"anchor_ms": math.inf},
        {"passes": 0},
        {"workspace_mb": -1.0},
        {"seconds": -1.0},
        {"blocks": ("fast",) * 3},
    ],
)
def test_a_record_that_makes_no_sense_is_not_stored(tmp_path: Path, bad: dict[str, object]) -> None:
    store = Store(tmp_path)
    store.register(lut_tables.DEVICE, [ANCHOR, RELU])
    with pytest.raises(LUTError, match=f"a record of {RELU.id} makes no sense"):
        store.append([VISIT, replace(VISIT, **bad)])  # type: ignore[arg-type]
    assert store.records(lut_tables.DEVICE.id) == []
    store.append([VISIT])
    usable(store)


@pytest.mark.parametrize(
    "bad",
    [{"latency_ms": 0.0}, {"latency_ms": math.nan}, {"standard_error": -1.0}, {"repeats": 0}, {"energy_mj": -2.0}],
)
def test_a_table_with_a_row_that_makes_no_sense_is_not_merged(tmp_path: Path, bad: dict[str, float]) -> None:
    store = Store(tmp_path)
    with pytest.raises(LUTError, match=RELU.id):
        store.merge(replace(TABLE, rows=(TABLE.rows[0], replace(ROW, **bad))))  # type: ignore[arg-type]
    assert store.devices() == []


@pytest.mark.parametrize("watts", [math.nan, -1.0, math.inf])
def test_a_power_that_makes_no_sense_is_not_stored(tmp_path: Path, watts: float) -> None:
    store = Store(tmp_path)
    store.register(lut_tables.DEVICE, [RELU])
    with pytest.raises(LUTError, match="the power of Relu makes no sense"):
        store.add_powers(lut_tables.DEVICE.id, {"Relu": watts})
    assert store.powers(lut_tables.DEVICE.id) == {}


def test_what_somebody_wrote_past_the_constraints_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    store.merge(TABLE)
    store.append([VISIT])
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute("UPDATE visits SET blocks = '[NaN]'")
        database.execute("UPDATE operators SET feature = 'x' WHERE id = ?", (RELU.id,))
    database.close()
    assert [row.feature for row in store.lut(lut_tables.DEVICE.id)] == [ANCHOR]
    assert "makes no sense, is left out and measured again" in caplog.text


class Busy(Store):
    """Another process stores a visit of a new operator after each query."""

    def select(self, query: str, *arguments: str) -> list[tuple[Any, ...]]:
        found = super().select(query, *arguments)
        new = relu(100 + len(Store(self.path.parent).operators()))
        other = Store(self.path.parent)
        other.register(DEVICE, [new])
        other.append([record(new, 1.0)])
        return found


def test_a_lut_is_of_one_moment_while_other_processes_measure(tmp_path: Path) -> None:
    filled(tmp_path)
    lut = Busy(tmp_path).lut(DEVICE.id, [relu(2)])
    assert [row.feature for row in lut] == [relu(2), ANCHOR]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rows_of_two_tables_are_scaled_to_one_anchor(tmp_path: Path, order: tuple[int, int]) -> None:
    """One table of a quiet machine, the other one measured while it was half as fast; both operators are as fast."""
    tables = [
        LUT((LUTRow(relu(2), DEVICE.id, 10.0, 0.1, 10), LUTRow(ANCHOR, DEVICE.id, 1.0, 0.01, 10)), DEVICE),
        LUT((LUTRow(relu(3), DEVICE.id, 20.0, 0.2, 10), LUTRow(ANCHOR, DEVICE.id, 2.0, 0.02, 10)), DEVICE),
    ]
    store = Store(tmp_path / "theirs")
    for number in order:
        store.merge(tables[number], "a table")
    found = store.lut(DEVICE.id).latencies()
    assert found[relu(2).id] == pytest.approx(found[relu(3).id])
    assert found[relu(2).id] == pytest.approx(10 * found[ANCHOR.id])
    store.lut(DEVICE.id).write(tmp_path / "both.csv")
    mine = Store(tmp_path / "mine")
    mine.register(DEVICE, [ANCHOR])
    mine.append([record(ANCHOR, 1.0)])
    mine.merge(LUT.read(tmp_path / "both.csv"), "both.csv")
    assert [mine.lut(DEVICE.id).latencies()[relu(width).id] for width in (2, 3)] == pytest.approx([10.0, 10.0])
