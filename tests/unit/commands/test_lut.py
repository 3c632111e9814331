"""``python -m autotailor lut``: tables go from one store into another."""

import io
import re
from pathlib import Path

import pytest

from autotailor.__main__ import main
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling import LUT, Fingerprint, Store
from autotailor.profiling.records.record import Record

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
    assert re.search(rf"{device.id}.*a processor.*ncnn 1.*3 .* \d{{4}}-\d\d-\d\d \d\d:\d\d ", capsys.readouterr().out)


def test_names_of_others_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = measured(tmp_path / "theirs", 1, cpu="[/]evil\x1b[2J")
    table = tmp_path / "t\x1b.csv"
    for folder, *command in (("theirs", "export", device.id, str(table)), ("ours", "import", str(table))):
        assert main(["lut", "--store", str(tmp_path / folder), *command]) == 0
    assert main(["lut", "--store", str(tmp_path / "ours"), "list"]) == 0
    assert main(["lut", "--store", str(tmp_path / "ours"), "remove", "--imported", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "t\\x1b.csv" in said
    assert "[/]evil\\x1b[2J" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "nowhere", "list"], "--store nowhere: the folder holds no LUT store"),
        (["export", "", "table.csv"], "2 devices begin with ''; known are: .*, .*lut list"),
        (["export", "xyz", "table.csv"], "0 devices begin with 'xyz'"),
        (["import", "nothing.csv"], r"nothing\.csv: the LUT cannot be read"),
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


def imported(folder: Path, theirs: Path, name: str) -> None:
    """A table of another store's only device, taken into a store."""
    table = theirs / name
    (device,) = Store(theirs).devices()
    Store(theirs).lut(device.fingerprint.id).write(table)
    assert main(["lut", "--store", str(folder), "import", str(table)]) == 0


def test_an_imported_table_is_removed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = measured(tmp_path / "ours", 1, 2)
    measured(tmp_path / "theirs", 2, 3, 4)
    imported(tmp_path / "ours", tmp_path / "theirs", "bad.csv")
    before = Store(tmp_path / "ours")
    assert len(before.lut(device.id)) == 4
    assert main(["lut", "--store", str(tmp_path / "ours"), "list"]) == 0
    assert f"{device.id}: 3 operators were imported from {tmp_path / 'theirs' / 'bad.csv'}" in capsys.readouterr().out
    assert main(["lut", "--store", str(tmp_path / "ours"), "remove", "--from", "bad.csv", "--yes"]) == 0
    assert "3 rows imported from bad.csv" in capsys.readouterr().out
    assert {row.feature for row in Store(tmp_path / "ours").lut(device.id)} == {relu(1), relu(2)}


@pytest.mark.parametrize(("answer", "left"), [("y\n", {2, 3}), ("\n", {1, 2, 3}), ("no\n", {1, 2, 3})])
def test_an_operator_is_removed_once_the_user_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, left: set[int]
) -> None:
    device, other = measured(tmp_path, 1, 2, 3), measured(tmp_path, 1, cpu="another")
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    arguments = ["lut", "--store", str(tmp_path), "remove", device.id, "--operator", relu(1).id[:6]]
    assert main(arguments) == 0
    assert f"device {device.id}: 1 operators: 1 measurements made here" in capsys.readouterr().out
    assert {row.feature for row in Store(tmp_path).lut(device.id)} == {relu(side) for side in left}
    assert {row.feature for row in Store(tmp_path).lut(other.id)} == {relu(1)}


def test_a_device_is_removed_with_its_powers_and_measured_again(tmp_path: Path) -> None:
    device, other = measured(tmp_path, 1, 2), measured(tmp_path, 1, cpu="another")
    store = Store(tmp_path)
    for known in (device, other):
        store.add_powers(known.id, {"Relu": 2.0})
    assert main(["lut", "--store", str(tmp_path), "remove", device.id[:6], "--yes"]) == 0
    assert [known.fingerprint for known in store.devices()] == [other]
    assert (store.powers(device.id), store.powers(other.id)) == ({}, {"Relu": 2.0})
    measured(tmp_path, 1, 2)
    assert len(store.lut(device.id)) == 2


def test_a_kind_is_removed_on_all_devices_but_only_what_was_imported(tmp_path: Path) -> None:
    device = measured(tmp_path / "ours", 1)
    measured(tmp_path / "theirs", 1, 2)
    imported(tmp_path / "ours", tmp_path / "theirs", "table.csv")
    arguments = ["lut", "--store", str(tmp_path / "ours"), "remove", "--operator", "Relu", "--imported", "--yes"]
    assert main(arguments) == 0
    assert {row.feature for row in Store(tmp_path / "ours").lut(device.id)} == {relu(1)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a device, --operator, --from or --imported"),
        (["xyz", "--yes"], "0 devices begin with 'xyz'"),
        (["--from", "other.csv", "--yes"], "no measurement matches"),
        (["--operator", "Relu"], "nobody can be asked here.*add --yes"),
    ],
)
def test_a_removal_that_is_not_clear_removes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    device = measured(tmp_path, 1)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["lut", "--store", str(tmp_path), "remove", *arguments]) == 1
    assert re.search(words, capsys.readouterr().err)
    assert len(Store(tmp_path).lut(device.id)) == 1
