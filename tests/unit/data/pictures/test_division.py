"""Pictures are divided into train, val and test by their content and the seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotailor import data
from picture_files import encoded, photo, section


def test_pictures_are_divided_by_the_seed_in_proportion_and_equal_files_stay_together(root: Path) -> None:
    for name in ("cat", "dog"):
        for i in range(8, 40):
            (root / name / f"{i}.png").write_bytes(encoded(photo(1000 + i + 500 * (name == "dog")), "PNG"))
        for copy in range(6):
            (root / name / f"copy{copy}.png").write_bytes((root / name / "0.png").read_bytes())
    splits = data.load(section(root))
    sets = {"train": splits.train.pictures, "val": splits.validation, "test": splits.test}  # type: ignore[attr-defined]
    groups = {part: set(its.groups.tolist()) for part, its in sets.items()}
    assert not groups["train"] & groups["val"]
    assert not groups["train"] & groups["test"]
    assert not groups["val"] & groups["test"]
    assert sum(len(its.labels) for its in sets.values()) == 92
    for label in (0, 1):
        counts = [len(set(its.groups[its.labels == label].tolist())) for its in sets.values()]
        assert counts == [32, 4, 4]
    again = data.load(section(root))
    assert np.array_equal(again.test.groups, splits.test.groups)
    other = data.load(section(root, seed=1))
    assert not np.array_equal(other.test.groups, splits.test.groups)


def test_the_division_does_not_depend_on_names(root: Path) -> None:
    def tested(splits: data.DataSplits) -> list[bytes]:
        opened = splits.test.pictures.open  # type: ignore[attr-defined]
        files = [opened.open.paths[i] for i in opened.ids]
        return sorted(path.read_bytes() for path in files)

    before = tested(data.load(section(root)))
    for path in sorted(root.rglob("*.png")):
        path.rename(path.with_name(f"x{9 - int(path.stem)}.png"))
    assert tested(data.load(section(root))) == before


@pytest.mark.parametrize("parts", ["train", "train test", "train val", "train val test", "train valid"])
def test_parts_that_are_missing_are_divided_off(root: Path, tmp_path: Path, parts: str) -> None:
    whole = tmp_path / "laid out"
    for number, part in enumerate(parts.split()):
        for name in ("cat", "dog"):
            (whole / part / name).mkdir(parents=True)
            for i in range(10):
                (whole / part / name / f"{i}.png").write_bytes(
                    encoded(photo(1000 * number + i + 50 * (name == "dog")), "PNG")
                )
    splits = data.load(section(whole))
    sizes = len(splits.train), len(splits.validation), len(splits.test)
    assert sizes == {
        "train": (16, 2, 2), "train test": (18, 2, 20), "train val": (20, 10, 10), "train val test": (20, 20, 20),
        "train valid": (20, 10, 10),
    }[parts]  # fmt: skip
    sets = [splits.train.pictures, splits.validation, splits.test]  # type: ignore[attr-defined]
    assert len(set(np.concatenate([np.unique(its.groups) for its in sets]))) == sum(sizes)
    for its in sets:
        assert np.bincount(its.labels).tolist() == [len(its.labels) // 2] * 2


def test_too_few_pictures_to_divide_are_counted_without_copies(root: Path) -> None:
    for path in sorted((root / "cat").iterdir())[2:]:
        path.unlink()
    for i in range(9):
        (root / "cat" / f"copy{i}.png").write_bytes((root / "cat" / "0.png").read_bytes())
    with pytest.raises(data.DataError, match="class cat has 2 different pictures, too few"):
        data.load(section(root))


@pytest.mark.parametrize("fractions", [[0.8, 0.2], [0.8, 0.2, 0.0], [0.8, 0.2, 0.2]])
def test_fractions_that_make_no_sense_are_refused(root: Path, fractions: list[float]) -> None:
    with pytest.raises(data.DataError, match=r"^data\.fractions: expected three positive parts"):
        data.check(section(root, fractions=fractions))
