"""Tables and stores of others may say anything: what makes no sense is refused or left out, and harms nothing else."""

from __future__ import annotations

import csv
import io
import math
import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotailor.profiling import LUT, LUTError, Store
from autotailor.profiling.table.database import FILE
from autotailor.profiling.table.lut import COLUMNS
from lut_tables import ANCHOR, DEVICE, RELU, ROW, TABLE, VISIT, usable


def text_of(table: LUT, folder: Path) -> str:
    table.write(folder / "sound.csv")
    return (folder / "sound.csv").read_text()


def with_cells(text: str, **cells: str) -> bytes:
    """A table with other values in its last row."""
    rows = list(csv.DictReader(io.StringIO(text)))
    rows[-1] |= cells
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


NUMBERS = ("nan", "inf", "-inf", "-1", "1e300", "fast", "1_0e400", "0x1")
NEEDED, FURTHER = ("latency_ms", "standard_error", "repeats"), ("workspace_mb", "energy_mj")


@pytest.mark.parametrize(
    ("column", "number"),
    [*((column, "") for column in NEEDED), *((column, number) for column in NEEDED + FURTHER for number in NUMBERS)],
)
def test_a_number_that_is_none_or_out_of_range_is_refused_with_its_line(
    tmp_path: Path, column: str, number: str
) -> None:
    path = tmp_path / "lut.csv"
    path.write_bytes(with_cells(text_of(TABLE, tmp_path), **{column: number}))
    with pytest.raises(LUTError, match=r"lut\.csv, line 3: "):
        LUT.read(path)


@pytest.mark.parametrize("column", ["latency_ms", "repeats"])
def test_no_latency_and_no_repeat_are_refused(tmp_path: Path, column: str) -> None:
    path = tmp_path / "lut.csv"
    path.write_bytes(with_cells(text_of(TABLE, tmp_path), **{column: "0"}))
    with pytest.raises(LUTError, match=f"line 3: {column} is 0"):
        LUT.read(path)


BROKEN: dict[str, tuple[Callable[[str], bytes], str]] = {
    "empty": (lambda _: b"", "columns .* are missing"),
    "binary": (lambda _: random.Random(0).randbytes(5000), "no text in UTF-8"),
    "UTF-16": (lambda text: text.encode("utf-16"), "no text in UTF-8"),
    "NUL": (lambda text: text.replace("0.04", "0.04\0").encode(), "line"),
    "a huge field": (lambda text: text.encode() + b"x" * 200_000 + b",1\n", "no CSV"),
    "a column twice": (lambda text: text.replace("measured_by", "latency_ms").encode(), "latency_ms occur twice"),
    "semicolons": (lambda text: text.replace(",", ";").encode(), "with commas in between"),
    "an open quote": (lambda text: text[:-30].encode() + b'"', "column device"),
    "quotes in quotes": (lambda text: text.replace('""', '"').encode(), "no CSV|values for"),
    "cut off": (lambda text: text[: len(text) - 400].encode(), "line 2: .*no CSV"),
    "a value too many": (lambda text: text.rstrip("\n").encode() + b",7\n", "13 values for 12 columns"),
    "a nested device": (lambda text: with_cells(text, device="[" * 100_000), "column device"),
    "a nested feature": (lambda text: with_cells(text, feature="[" * 100_000), "line 3"),
    "a feature of numbers": (lambda text: with_cells(text, feature="7"), "line 3: not a row"),
    "old Macintosh, cut": (lambda text: text.replace("\n", "\r").encode()[:-400], "line"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_refused(tmp_path: Path, name: str) -> None:
    change, words = BROKEN[name]
    path = tmp_path / "lut.csv"
    path.write_bytes(change(text_of(TABLE, tmp_path)))
    with pytest.raises(LUTError, match=words):
        LUT.read(path)


@pytest.mark.parametrize("path", ["/dev/zero", ".", "with\0nothing.csv"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(LUTError, match=r"name the file of a LUT|run the rule profile"):
        LUT.read(Path(path))


def test_a_table_that_a_spreadsheet_has_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lut.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text_of(TABLE, tmp_path).replace("\n", "\r\n").encode())
    assert LUT.read(path) == TABLE


CELLS = st.one_of(
    st.sampled_from(["nan", "inf", "-1", "0", "1e999", "", "1e-320", "9" * 400, "1e308", "{}", "[]", "null", '"']),
    st.floats().map(repr),
    st.integers().map(str),
    st.text(max_size=20),
)
EDITS = st.one_of(
    st.tuples(st.just("cells"), st.dictionaries(st.sampled_from(COLUMNS), CELLS, min_size=1, max_size=3)),
    st.tuples(st.just("splice"), st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=40))),
    st.tuples(st.just("bytes"), st.binary(max_size=300)),
    st.tuples(st.just("header"), st.lists(st.sampled_from([*COLUMNS, "x"]), max_size=14)),
)


def changed(text: str, edit: tuple[str, object]) -> bytes:
    """A table that somebody, or a disk, has changed."""
    match edit:
        case ("cells", dict(cells)):
            return with_cells(text, **cells).replace(b"\r\n", b"\n") if _writable(cells) else text.encode()
        case ("splice", (float(place), int(length), bytes(new))):
            data = text.encode()
            start = int(place * len(data))
            return data[:start] + new + data[start + length :]
        case ("header", list(names)):
            return ",".join(names).encode() + b"\n" + text.encode().partition(b"\n")[2]
        case (_, bytes(data)):
            return data
    raise AssertionError(edit)


def _writable(cells: dict[str, str]) -> bool:
    try:
        "".join(cells.values()).encode()
    except UnicodeEncodeError:
        return False
    return True


def import_changed(folder: Path, edit: tuple[str, object]) -> None:
    """Whatever a table says, it is refused with a LUTError, or taken and the store stays usable."""
    folder.mkdir(exist_ok=True)
    for left in folder.glob("*"):
        left.unlink()
    (folder / "lut.csv").write_bytes(changed(text_of(TABLE, folder), edit))
    store = Store(folder)
    store.register(DEVICE, [ANCHOR, RELU])
    store.append([replace(VISIT, key=ANCHOR.id)])
    with suppress(LUTError):
        store.merge(LUT.read(folder / "lut.csv"), "lut.csv")
    usable(store)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edit=EDITS)
def test_any_table_is_refused_or_harmless(tmp_path: Path, edit: tuple[str, object]) -> None:
    import_changed(tmp_path / "store", edit)


@pytest.mark.sweep
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edit=EDITS)
def test_a_thousand_tables_are_refused_or_harmless(tmp_path: Path, edit: tuple[str, object]) -> None:
    import_changed(tmp_path / "store", edit)


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
    store.register(DEVICE, [ANCHOR, RELU])
    with pytest.raises(LUTError, match=f"a record of {RELU.id} makes no sense"):
        store.append([VISIT, replace(VISIT, **bad)])  # type: ignore[arg-type]
    assert store.records(DEVICE.id) == []
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
    store.register(DEVICE, [RELU])
    with pytest.raises(LUTError, match="the power of Relu makes no sense"):
        store.add_powers(DEVICE.id, {"Relu": watts})
    assert store.powers(DEVICE.id) == {}


def test_what_somebody_wrote_past_the_constraints_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path)
    store.merge(TABLE)
    store.append([VISIT])
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute("UPDATE visits SET blocks = '[NaN]'")
        database.execute("UPDATE operators SET feature = 'x' WHERE id = ?", (RELU.id,))
    database.close()
    assert [row.feature for row in store.lut(DEVICE.id)] == [ANCHOR]
    assert "makes no sense and is left out" in caplog.text
