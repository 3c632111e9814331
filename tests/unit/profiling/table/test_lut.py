"""Tables of latencies: what is written is read, and what makes no sense is refused with its line or harms nothing."""

import csv
import io
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lut_tables
from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.profiling import LUT, DeviceConfig, Fingerprint, LUTError, LUTRow, Store, open_runtime, read_table
from autotailor.profiling.device import fingerprint
from autotailor.profiling.table.lut import COLUMNS
from lut_tables import usable

SHAPE = (1, 8, 4, 4)
CONV = OperatorFeature(
    "Conv", (SHAPE,), (SHAPE,), ((8, 8, 1, 1), (8,)), freeze_attributes({"strides": [1, 1]}), (Follower("Relu"),)
)
ADD = OperatorFeature("Add", (SHAPE, SHAPE), (SHAPE,))
TABLE = LUT((LUTRow(CONV, "f", 0.1 + 0.2, 1e-5, 40), LUTRow(ADD, "f", 0.001, 1e-6, 40, energy_mj=0.5)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lut.csv"
    TABLE.write(path)
    assert LUT.read(path) == TABLE
    assert LUT.read(path).latencies() == {CONV.id: 0.1 + 0.2, ADD.id: 0.001}
    assert [p.name for p in path.parent.iterdir()] == ["lut.csv"]


def test_a_missing_file_says_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(LUTError, match="run the rule profile"):
        LUT.read(tmp_path / "lut.csv")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("latency_ms", "latency", "columns latency_ms are missing"),
        ("0.001", "fast", "line 3: not a row"),
        ("0.001", "-0.001", "line 3: latency"),
        (ADD.id, "0" * 12, "line 3: operator_id is '0{12}'"),
        (",f,0.001", ",g,0.001", "2 devices"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "lut.csv"
    TABLE.write(path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LUTError, match=words):
        LUT.read(path)


def test_what_is_asked_for_is_taken_and_the_anchor_stays(tmp_path: Path) -> None:
    device = Fingerprint({"anchor": ADD.id})
    table = LUT(tuple(replace(row, fingerprint=device.id) for row in TABLE.rows), device)
    table.write(tmp_path / "lut.csv")
    assert LUT.read(tmp_path / "lut.csv").select([CONV]) == table
    assert [row.feature for row in table.select([ADD])] == [ADD]
    others = [OperatorFeature("Relu", ((1, i),), ((1, i),)) for i in range(3)]
    with pytest.raises(LUTError, match=r"lacks 3 of 4 operators \(3 Relu\).*Ask for a table"):
        table.select([CONV, *others])
    assert [row.feature for row in table.select([CONV, *others], frozenset(others))] == [CONV, ADD]
    with pytest.raises(LUTError, match=r"lacks 1 of 3 operators \(1 Relu\)"):
        table.select([CONV, ADD, *others], frozenset(others[1:]))


def test_a_device_that_is_not_the_fingerprints_is_refused(tmp_path: Path) -> None:
    LUT(TABLE.rows, Fingerprint({"cpu": "x"})).write(tmp_path / "lut.csv")
    with pytest.raises(LUTError, match="column device describes"):
        LUT.read(tmp_path / "lut.csv")


def test_a_table_of_another_configuration_is_refused(tmp_path: Path) -> None:
    device = DeviceConfig.from_section({"name": "test", "threads": 2})
    measured = fingerprint(device, {}, open_runtime(device).facts())
    LUT((replace(TABLE.rows[0], fingerprint=measured.id),), measured).write(tmp_path / "lut.csv")
    assert len(read_table(tmp_path / "lut.csv", device)) == 1
    with pytest.raises(LUTError, match="threads 2, not 1"):
        read_table(tmp_path / "lut.csv", replace(device, threads=1))
    with pytest.raises(LUTError, match="'use_winograd_convolution': False"):
        read_table(tmp_path / "lut.csv", replace(device, options={"use_winograd_convolution": False}))


def test_an_operator_twice_is_refused(tmp_path: Path) -> None:
    LUT((*TABLE.rows, TABLE.rows[0])).write(tmp_path / "lut.csv")
    with pytest.raises(LUTError, match="twice"):
        LUT.read(tmp_path / "lut.csv")


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


NUMBERS = ("nan", "inf", "-inf", "-1", "1e300", "fast", "1_0e400", "0x1", "1_0", "１０")
NEEDED, FURTHER = ("latency_ms", "standard_error", "repeats"), ("workspace_mb", "energy_mj")


@pytest.mark.parametrize(
    ("column", "number"),
    [*((column, "") for column in NEEDED), *((column, number) for column in NEEDED + FURTHER for number in NUMBERS)],
)
def test_a_number_that_is_none_or_out_of_range_is_refused_with_its_line(
    tmp_path: Path, column: str, number: str
) -> None:
    path = tmp_path / "lut.csv"
    path.write_bytes(with_cells(text_of(lut_tables.TABLE, tmp_path), **{column: number}))
    with pytest.raises(LUTError, match=r"lut\.csv, line 3: "):
        LUT.read(path)


@pytest.mark.parametrize("column", ["latency_ms", "repeats"])
def test_no_latency_and_no_repeat_are_refused(tmp_path: Path, column: str) -> None:
    path = tmp_path / "lut.csv"
    path.write_bytes(with_cells(text_of(lut_tables.TABLE, tmp_path), **{column: "0"}))
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
    path.write_bytes(change(text_of(lut_tables.TABLE, tmp_path)))
    with pytest.raises(LUTError, match=words):
        LUT.read(path)


@pytest.mark.parametrize("path", ["/dev/zero", ".", "with\0nothing.csv"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(LUTError, match=r"name the file of a LUT|run the rule profile"):
        LUT.read(Path(path))


def test_a_table_that_a_spreadsheet_has_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lut.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text_of(lut_tables.TABLE, tmp_path).replace("\n", "\r\n").encode())
    assert LUT.read(path) == lut_tables.TABLE


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
    (folder / "lut.csv").write_bytes(changed(text_of(lut_tables.TABLE, folder), edit))
    store = Store(folder)
    store.register(lut_tables.DEVICE, [lut_tables.ANCHOR, lut_tables.RELU])
    store.append([replace(lut_tables.VISIT, key=lut_tables.ANCHOR.id)])
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
