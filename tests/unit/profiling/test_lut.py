from pathlib import Path

import pytest

from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.profiling import LUT, LUTError, LUTRow

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
        (ADD.id, "0" * 12, "line 3: id 0{12}"),
        (",f,0.001", ",g,0.001", "2 devices"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "lut.csv"
    TABLE.write(path)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LUTError, match=words):
        LUT.read(path)


def test_an_operator_twice_is_refused(tmp_path: Path) -> None:
    LUT((*TABLE.rows, TABLE.rows[0])).write(tmp_path / "lut.csv")
    with pytest.raises(LUTError, match="twice"):
        LUT.read(tmp_path / "lut.csv")
