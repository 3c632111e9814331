"""``python -m autotailor lut``: tables go from one store into another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotailor.__main__ import main
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUT, Fingerprint, Store
from autotailor.profiling.record import Record

FACTS = {"hardware": {"cpu": "a processor"}, "runtime": {"name": "ncnn", "version": "1"}, "threads": 1}


def relu(side: int) -> OperatorFeature:
    return OperatorFeature("Relu", ((1, 2, side, side),), ((1, 2, side, side),))


def measured(folder: Path, *sides: int, cpu: str = "a processor") -> Fingerprint:
    """A store that has measured some operators."""
    device = Fingerprint({**FACTS, "hardware": {"cpu": cpu}})
    store, operators = Store(folder), [relu(side) for side in sides]
    store.register(device, operators)
    store.append([Record(device.id, feature.id, (0.5,) * 8, 1.0, 8, 0.1) for feature in operators])
    return device


def test_a_table_goes_from_one_store_into_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = measured(tmp_path / "theirs", 1, 2, 3)
    table = tmp_path / "folder" / "table.csv"
    assert main(["lut", "--store", str(tmp_path / "theirs"), "export", device.id[:5], str(table)]) == 0
    assert len(LUT.read(table)) == 3
    measured(tmp_path / "ours", 3)
    assert main(["lut", "--store", str(tmp_path / "ours"), "import", str(table)]) == 0
    assert "3 operators" in (said := capsys.readouterr().out)
    assert "2 of them are new" in said
    assert {row.feature for row in Store(tmp_path / "ours").lut(device.id)} == {relu(1), relu(2), relu(3)}
    assert main(["lut", "--store", str(tmp_path / "ours"), "list"]) == 0
    assert re.search(rf"{device.id}.*a processor.*ncnn 1.*3", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "nowhere", "list"], "--store nowhere: no LUT store there"),
        (["export", "", "table.csv"], "2 devices begin with ''; known are: .*, .*lut list"),
        (["export", "xyz", "table.csv"], "0 devices begin with 'xyz'"),
        (["import", "nothing.csv"], r"nothing\.csv: cannot be read"),
        (["import", "bare.csv"], "does not describe the device"),
    ],
)
def test_bad_arguments_are_named(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    measured(Path("luts"), 1)
    device = measured(Path("luts"), 1, cpu="another")
    LUT(Store(Path("luts")).lut(device.id).rows).write(Path("bare.csv"))
    assert main(["lut", *arguments]) == 1
    assert re.search(words, capsys.readouterr().err)
    assert not Path("table.csv").exists()
    assert not Path("nowhere").exists()
