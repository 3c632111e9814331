from dataclasses import replace
from pathlib import Path

import pytest

from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.profiling import LUT, DeviceConfig, Fingerprint, LUTError, LUTRow, open_runtime, read_table
from autotailor.profiling.device import fingerprint

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
