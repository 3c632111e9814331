"""Pictures whose labels stand in a CSV file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import picture_files
from autotailor import data, task
from autotailor.data import DataError

LABELS = ("sky", "water", "people")


def write(root: Path, count: int = 24, part: bool = False, head: str = "", rows: str = "") -> np.ndarray:
    """Writes pictures with three labels each, and ``labels.csv``; returns the labels ``[count, 3]``."""
    labels = np.array([[i % 2, i // 2 % 2, i % 3 == 0] for i in range(count)], dtype=np.int64)
    (root / "deep").mkdir(parents=True)
    lines = [head or f"file,{'part,' if part else ''}{','.join(LABELS)}"]
    for i, row in enumerate(labels):
        pixels = np.random.default_rng(i).integers(0, 256, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / "deep" / f"{i}.png")
        where = ("Train", "val", "test")[min(i // (count // 2), 2)] if i < count - 4 else "test"
        lines.append(f"deep/{i}.png,{where + ',' if part else ''}{','.join(map(str, row))}")
    (root / "labels.csv").write_text("\n".join(lines) + "\n" + rows, encoding="utf-8")
    return labels


def section(root: Path, **more: object) -> dict[str, object]:
    return picture_files.section(root, kind="table", task="multilabel", **more)


def test_labels_come_with_their_pictures_in_all_parts(tmp_path: Path) -> None:
    labels = write(tmp_path)
    splits = data.load(section(tmp_path))
    assert (splits.classes, splits.num_classes, splits.validation.task) == (LABELS, 3, "multilabel")
    seen = np.concatenate([splits.validation.labels, splits.test.labels])
    assert seen.shape == (len(labels) - len(splits.train), 3)
    images, rows = next(splits.train.batches(0, len(splits.train)))
    assert rows.shape == (len(splits.train), 3)
    assert len(images) == len(splits.train)
    found = np.concatenate([rows.numpy(), seen])
    assert sorted(map(tuple, found.astype(int).tolist())) == sorted(map(tuple, labels.tolist()))


def test_parts_are_those_of_the_table(tmp_path: Path) -> None:
    labels = write(tmp_path, part=True)
    splits = data.load(section(tmp_path))
    assert len(splits.train) == 12
    np.testing.assert_array_equal(splits.validation.labels, labels[12:20])
    np.testing.assert_array_equal(splits.test.labels, labels[20:])


def test_a_part_of_a_set_keeps_its_labels_and_its_task(tmp_path: Path) -> None:
    write(tmp_path, part=True)
    images = data.load(section(tmp_path)).validation
    some = images.part(np.array([1, 4]))
    np.testing.assert_array_equal(some.labels, images.labels[[1, 4]])
    assert some.task == "multilabel"
    read = [rows for _, rows in some.batches(8)]
    np.testing.assert_array_equal(read[0], some.labels)


def test_the_identity_of_the_data_depends_on_the_labels(tmp_path: Path) -> None:
    write(tmp_path, part=True)
    table = tmp_path / "labels.csv"
    before = data.fingerprint(section(tmp_path)), data.training_fingerprint(section(tmp_path))
    text = table.read_text()
    table.write_text(text.replace("deep/0.png,Train,0", "deep/0.png,Train,1"))
    after = data.fingerprint(section(tmp_path)), data.training_fingerprint(section(tmp_path))
    assert before[0] != after[0]
    assert before[1] != after[1]
    lines = text.splitlines()
    table.write_text("\n".join([*lines[:-1], lines[-1][:-1] + str(1 - int(lines[-1][-1]))]) + "\n")
    assert data.training_fingerprint(section(tmp_path)) == before[1]
    assert data.fingerprint(section(tmp_path)) != before[0]


def test_without_labels_the_columns_are_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path)
    splits = data.load(section(tmp_path, labels=False))
    assert (splits.labelled, splits.num_classes) == (False, 0)
    assert (splits.validation.labels == -1).all()


@pytest.mark.parametrize(
    ("head", "rows", "says"),
    [
        ("name,sky,water,people", "", "expected file, perhaps part, and at least two labels"),
        ("file,sky", "", "at least two labels"),
        ("file,sky,sky,people", "", "at least two labels of different names"),
        ("", "deep/1.png,1,0,0\n", "names deep/1.png twice"),
        ("", "deep/9999.png,1,0,0\n", "1 pictures of .* are missing"),
        ("", "deep/77.png,1,yes,0\n", "line 26 of .* has 'yes' in column water; expected"),
        ("", "deep/77.png,1,0\n", "in column people"),
        ("", "deep/77.png,1,0,1,1\n", "in column file"),
        ("", ",1,0,1\n", "in column file"),
    ],
)
def test_a_table_that_is_none_is_refused_before_any_work(tmp_path: Path, head: str, rows: str, says: str) -> None:
    write(tmp_path, head=head, rows=rows)
    with pytest.raises(DataError, match=says):
        data.check(section(tmp_path))


def test_a_part_of_another_name_is_refused(tmp_path: Path) -> None:
    write(tmp_path, part=True, rows="deep/0.png,dev,1,0,0\n")
    with pytest.raises(DataError, match="is of the part 'dev'; expected one of train, val, test"):
        data.check(section(tmp_path))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels\.csv cannot be read .*; name the table in data\.table"):
        data.check(section(tmp_path))


def numbers(root: Path, rows: str = "", head: str = "file,age,height") -> dict[str, object]:
    """Writes pictures with two numbers each; returns the section."""
    root.mkdir(exist_ok=True)
    lines = [head]
    for i in range(24):
        Image.fromarray(np.full((24, 24, 3), i, dtype=np.uint8)).save(root / f"{i}.png")
        lines.append(f"{i}.png,{i / 2},-{i}e2")
    (root / "labels.csv").write_text("\n".join(lines) + "\n" + rows, encoding="utf-8")
    return picture_files.section(root, kind="table", task="regression", scale=[1.0, 1.0], flip=False)


def test_numbers_come_with_their_pictures_and_the_task_knows_their_scale(tmp_path: Path) -> None:
    splits = data.load(numbers(tmp_path))
    assert (splits.classes, splits.num_classes, splits.validation.labels.dtype) == (("age", "height"), 2, np.float32)
    images, rows = next(splits.train.batches(0, len(splits.train)))
    grey = (255 * (images.mean((1, 2, 3)) * splits.std[0] + splits.mean[0])).numpy()
    assert np.corrcoef(grey, rows[:, 0])[0, 1] > 0.99
    name, _, told = splits.test.task.partition(" ")
    means, spreads = json.loads(told)
    assert name == "regression"
    np.testing.assert_allclose(means, rows.double().mean(0), rtol=1e-6)
    np.testing.assert_allclose(spreads, rows.double().std(0, correction=0), rtol=1e-6)
    some = splits.validation.part(np.array([0]))
    assert (some.labels.dtype, some.task) == (np.float32, splits.validation.task)
    assert task.of(some).has_numbers


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("77.png,old,1\n", r"line 26 of .*labels\.csv has 'old' in column age; expected the path .* a finite number"),
        ("77.png,1,nan\n", r"line 26 of .*labels\.csv has 'nan' in column height"),
        ("77.png,1,-inf\n", "has '-inf' in column height"),
        ("77.png,1,\n", "has '' in column height"),
        ("77.png,1\n", "has None in column height"),
    ],
)
def test_what_is_no_finite_number_is_named_by_file_row_and_column(tmp_path: Path, rows: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        data.check(numbers(tmp_path, rows))


def test_one_column_of_numbers_is_enough(tmp_path: Path) -> None:
    section = numbers(tmp_path)
    text = (tmp_path / "labels.csv").read_text()
    (tmp_path / "labels.csv").write_text("\n".join(line.rpartition(",")[0] for line in text.splitlines()) + "\n")
    assert data.classes(section) == ("age",)
    assert data.load(section).test.labels.shape[1:] == (1,)


def test_numbers_without_the_task_and_folders_with_it_are_refused_with_the_remedy(tmp_path: Path) -> None:
    section = numbers(tmp_path / "table")
    with pytest.raises(
        DataError, match=r"expected the path of a picture and 0 or 1 .* numbers want the task regression"
    ):
        data.check(section | {"task": "multilabel"})
    for name in ("one", "three"):
        (tmp_path / "folder" / name).mkdir(parents=True)
        for i in range(10):
            pixels = np.full((24, 24, 3), i + 20 * len(name), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "folder" / name / f"{i}.png")
    with pytest.raises(DataError, match=r"labels of validation are int64 \[2\], expected .* folders have classes"):
        data.load(picture_files.section(tmp_path / "folder", task="regression"))
