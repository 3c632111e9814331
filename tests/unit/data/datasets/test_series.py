"""Recordings: windows, parts, sound and tables as people have them, and what is refused."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import wavfile

from autotailor import data
from autotailor.data import DataSplits
from autotailor.data.datasets.series import MOST_LINE, _windows, holds_recordings, read_recording
from autotailor.data.errors import DataError

RATE = 4000


def load(root: Path, **more: Any) -> DataSplits:
    return data.load({"name": "mine", "kind": "series", "root": str(root), "seed": 0, **more})


def tone(hertz: float, count: int = 800, rate: int = RATE) -> np.ndarray:
    return (20000 * np.sin(2 * np.pi * hertz * np.arange(count) / rate)).astype(np.int16)


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    """Two classes with twenty tones each."""
    for name, base in (("high", 900), ("low", 100)):
        (tmp_path / name).mkdir()
        for i in range(20):
            wavfile.write(tmp_path / name / f"{i}.wav", RATE, tone(base + 7 * i))
    return tmp_path


def table(path: Path, count: int, start: float = 0.0, head: str = "time,ax,ay") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{start + i},{start + i / 10},{start - i / 10}" for i in range(count)]
    path.write_text("\n".join([*([head] if head else []), *rows]) + "\n")


def test_sound_in_folders_of_classes_is_divided(sounds: Path) -> None:
    splits = load(sounds, mean=[0.0], std=[1.0])
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [32, 4, 4]
    assert splits.classes == ("high", "low")
    assert splits.signal
    assert (splits.signal.shape, splits.signal.file) == ((1, 1, 800), (1, 800))
    wanted = {tone(base + 7 * i).tobytes(): label for label, base in enumerate((900, 100)) for i in range(20)}
    for images, labels in splits.train.batches(0, 32):
        for image, label in zip(images, labels, strict=True):
            assert wanted[(image.flatten() * 32768).numpy().astype(np.int16).tobytes()] == label


def test_windows_of_a_recording_and_of_its_copies_stay_in_one_part(tmp_path: Path) -> None:
    for i in range(24):
        wavfile.write(tmp_path / f"{i}.wav", RATE, np.full(1000, 100 * (i // 2 + 1), np.int16))  # each is there twice
    shares = {"fractions": [0.5, 0.25, 0.25], "mean": [0.0], "std": [1.0]}
    splits = load(tmp_path, labels=False, length=200, hop=100, **shares)
    sets = [
        {round(float(image.mean()) * 32768) for images, _ in found for image in images}
        for found in (splits.train.batches(0, 8), splits.validation.batches(8), splits.test.batches(8))
    ]
    assert sum(map(len, sets)) == 12 == len(set().union(*sets))
    assert sum(map(len, (splits.train, splits.validation, splits.test))) == 24 * 9


@given(st.integers(1, 40), st.integers(1, 50), st.integers(1, 60))
def test_windows_are_those_of_a_loop(count: int, length: int, hop: int) -> None:
    rows = np.arange(2 * count, dtype=np.float32).reshape(2, count)
    padded = np.pad(rows, ((0, 0), (0, max(0, length - count))))
    wanted = [padded[:, first : first + length] for first in range(0, padded.shape[1] - length + 1, hop)]
    assert np.array_equal(_windows(rows, length, hop), np.stack(wanted))


def test_tables_with_parts_of_their_own_and_chosen_columns(tmp_path: Path) -> None:
    for part, count in (("train", 3), ("val", 1), ("test", 2)):
        for label, start in (("walk", 0.0), ("run", 50.0)):
            for i in range(count):
                table(tmp_path / part / label / f"{i}.csv", 25, start + i)
    splits = load(tmp_path, columns=["ay", "ax"], length=10, mean=[0.0, 0.0], std=[1.0, 1.0])
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [12, 4, 8]
    images, labels = next(splits.validation.batches(4))
    assert labels.tolist() == [0, 0, 1, 1]
    assert splits.classes == ("run", "walk")
    assert torch.allclose(images[2, :, 0], torch.stack([-torch.arange(10) / 10, torch.arange(10) / 10]))
    assert load(tmp_path, length=10).mean[0] != 0


@pytest.mark.parametrize(("kind", "scale"), [("uint8", 128), ("int32", 2**31), ("float32", 1)])
def test_sound_lies_between_minus_one_and_one(kind: str, scale: float, tmp_path: Path) -> None:
    numbers = np.array([[0, 1], [2, 3], [4, 5]]).astype(kind) if kind != "float32" else np.eye(3, 2, dtype=kind) / 2
    wavfile.write(tmp_path / "a.wav", RATE, numbers)
    found = read_recording((tmp_path / "a.wav").read_bytes(), ".WAV")
    offset = 128 if kind == "uint8" else 0
    assert np.allclose(found.rows, (numbers.T.astype(float) - offset) / scale)
    assert found.rate == RATE


def test_a_table_without_a_head_has_numbers_for_names(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", 4, head="")
    found = read_recording((tmp_path / "a.csv").read_bytes(), ".csv", ("2", "0"))
    assert found.columns == ("2", "0")
    assert np.allclose(found.rows[1], np.arange(4))


@pytest.mark.parametrize("text", ['"1","2"\n"3","4"\n', "\n1,2\n3,4\n", " \r1,2\r3,4\r", "1,2\n3,4", "a,b\n1,2\n3,4"])
def test_no_row_of_a_table_is_taken_for_its_head(text: str) -> None:
    assert read_recording(text.encode(), ".csv").rows.tolist() == [[1, 3], [2, 4]]


def test_an_empty_place_in_the_first_row_is_refused_as_in_any_other() -> None:
    for text in (",2\n3,4\n", "1,2\n,4\n"):
        with pytest.raises(ValueError, match="places without a number"):
            read_recording(text.encode(), ".csv")


def test_a_head_may_be_cut_within_a_character_where_it_is_looked_at() -> None:
    head = "x" * (MOST_LINE - 1) + "é"
    assert read_recording(f"{head},b\n1,2\n".encode(), ".csv").columns == (head, "b")


def refused(root: Path, **more: Any) -> str:
    with pytest.raises(DataError) as error:
        load(root, **more)
    return str(error.value)


def test_recordings_that_cannot_be_used_are_named(sounds: Path) -> None:
    (sounds / "low" / "3.wav").write_bytes((sounds / "low" / "3.wav").read_bytes()[:30])
    table(sounds / "low" / "x.csv", 4, head="a,b,c")
    (sounds / "low" / "y.csv").write_text("a,b\n1,\n")
    (sounds / "low" / "z.csv").write_text("a,b\n1,two\n")
    said = refused(sounds)
    assert "3 of 43 recordings cannot be used" in said
    assert "3.wav: it is no sound" in said
    assert "y.csv: it holds numbers that are not finite" in said
    assert "its column b holds text; name the columns of numbers in data.columns" in said
    for name in ("3.wav", "y.csv", "z.csv"):
        (sounds / "low" / name).unlink()
    assert "low/x.csv has the columns a, b, c, train/high/0.wav has 1 channels" in refused(sounds)
    assert "the columns a, b, c, and not ax (data.columns)" in refused(sounds, columns=["ax"])


def test_rates_classes_and_empty_folders_are_checked(sounds: Path) -> None:
    assert "0.wav has 4000 numbers a second, expected 8000" in refused(sounds, rate=8000)
    wavfile.write(sounds / "low" / "other.wav", 8000, tone(100, rate=8000))
    assert "other.wav has 8000 numbers a second, expected 4000; bring all to the rate" in refused(sounds)
    (sounds / "low" / "other.wav").unlink()
    assert "leave data.layout out" in refused(sounds, layout="last")
    (sounds / "none").mkdir()
    assert "no recording (.wav, .csv, .tsv) lies in" in refused(sounds)


def test_parts_have_the_same_classes_and_pipes_are_not_read(tmp_path: Path) -> None:
    for part, label in (("train", "a"), ("train", "b"), ("val", "a")):
        (tmp_path / part / label).mkdir(parents=True)
        wavfile.write(tmp_path / part / label / "0.wav", RATE, tone(100))
    assert "val has other classes than train: only one of them has b" in refused(tmp_path)
    os.mkfifo(tmp_path / "train" / "a" / "pipe.wav")
    wavfile.write(tmp_path / "val" / "b.wav", RATE, tone(100))
    (tmp_path / "val" / "b").mkdir()
    (tmp_path / "val" / "b.wav").rename(tmp_path / "val" / "b" / "0.wav")
    assert "pipe.wav" in refused(tmp_path)


def test_a_folder_of_pictures_with_a_table_holds_no_recordings(tmp_path: Path) -> None:
    table(tmp_path / "labels.csv", 3)
    assert holds_recordings(tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.JPG").write_bytes(b"")
    assert not holds_recordings(tmp_path)


REGRESSION = {"task": "regression", "mean": [0.0, 0.0], "std": [1.0, 1.0]}


def test_columns_of_tables_are_the_numbers_of_their_windows(tmp_path: Path) -> None:
    for i in range(20):
        table(tmp_path / "trips" / f"{i}.csv", 25, start=100.0 * i, head="time,speed,ay")
    splits = load(tmp_path, targets=["speed"], length=10, **REGRESSION)
    assert splits.signal
    assert (splits.signal.shape, splits.classes, splits.num_classes) == ((2, 1, 10), ("speed",), 1)
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [32, 4, 4]
    seen = 0
    for images, numbers in (*splits.train.batches(0, 32), *splits.validation.batches(8)):
        assert numbers.dtype == torch.float32
        for image, number in zip(images, numbers, strict=True):
            time, ay = image[:, 0]
            start = 100 * round(float(time[0]) // 100)  # of its recording: time = start + i, speed = start + i / 10
            assert float(number) == pytest.approx(start + float(time.mean() - start) / 10, rel=1e-5)
            assert torch.allclose(ay, start - (time - start) / 10)
            seen += 1
    assert seen == 36
    chosen = load(tmp_path, targets=["ay", "speed"], columns=["time"], task="regression", mean=[0.0], std=[1.0])
    assert (chosen.classes, chosen.validation.labels.shape[1:]) == (("ay", "speed"), (2,))
    assert chosen.signal
    assert chosen.signal.shape == (1, 1, 25)


def test_a_table_has_the_numbers_of_sound(tmp_path: Path) -> None:
    rows = []
    for i in range(20):
        wavfile.write(tmp_path / f"{i}.wav", RATE, np.full(800, 100 * (i + 1), np.int16))
        rows.append(f"{i}.wav,{i / 4},{-i}")
    (tmp_path / "hertz.csv").write_text("\n".join(["file,high,low", *rows]) + "\n")
    section = {"table": "hertz.csv", "task": "regression", "mean": [0.0], "std": [1.0]}
    splits = load(tmp_path, length=400, **section)
    assert splits.classes == ("high", "low")
    for images, numbers in splits.train.batches(0, 8):
        which = images.mean((1, 2, 3)) * 32768 / 100 - 1
        assert torch.allclose(numbers, torch.stack([which / 4, -which], 1), atol=1e-3)
    before = data.fingerprint({"name": "mine", "kind": "series", "root": str(tmp_path), **section})
    (tmp_path / "hertz.csv").write_text("\n".join(["file,high,low", *rows[:-1], "19.wav,7,7"]) + "\n")
    assert data.fingerprint({"name": "mine", "kind": "series", "root": str(tmp_path), **section}) != before
    (tmp_path / "hertz.csv").write_text("\n".join(["file,high,low", *rows[:-1]]) + "\n")
    assert "hertz.csv has no row for 19.wav; add it" in refused(tmp_path, **section)
    (tmp_path / "hertz.csv").write_text("\n".join(["file,high,low", *rows[:-1], "19.wav,nan,1"]) + "\n")
    assert "no finite numbers for 19.wav" in refused(tmp_path, **section)
    (tmp_path / "hertz.csv").write_text("\n".join(["file,high,low", *rows, "7.wav,0,1"]) + "\n")
    assert "hertz.csv names 7.wav twice; leave one of both rows out" in refused(tmp_path, **section)
    (tmp_path / "hertz.csv").write_text("name,high\n1,2\n")
    assert "no table with the column file" in refused(tmp_path, **section)


def test_where_numbers_come_from_is_said_once(sounds: Path) -> None:
    assert "data.targets: expected columns of the recordings, or a table" in refused(sounds, task="regression")
    assert "only a regression with labels learns numbers" in refused(sounds, targets=["ax"])
    both = {"task": "regression", "targets": ["ax"], "columns": ["ay", "ax"]}
    assert "data.targets: ax is in columns, too" in refused(sounds, **both)
    assert "it has no column ax (data.targets); its numbers can stand in a table" in refused(
        sounds, task="regression", targets=["ax"]
    )
