"""The folder of an export is new, or one in which the same export was interrupted."""

from pathlib import Path

import pytest

from autotailor.runs import RunError
from autotailor.runs.destination import destination

QUESTION = {"budget_ms": 0.5, "polish": True}


def interrupted(folder: Path) -> None:
    """An export that was interrupted after some work."""
    with destination(folder, QUESTION) as place:
        (place.work / "journal.jsonl").write_text("work")
        (place.files / "half.onnx").write_text("half")


def test_files_arrive_together_and_the_progress_goes(tmp_path: Path) -> None:
    with destination(tmp_path / "a" / "new", QUESTION) as place:
        (place.files / "model.onnx").write_text("whole")
        assert [path.name for path in place.folder.iterdir()] == [".work"]
        place.finish()
    assert [path.name for path in (tmp_path / "a" / "new").iterdir()] == ["model.onnx"]


def test_the_same_question_goes_on_with_the_progress_and_without_half_files(tmp_path: Path) -> None:
    interrupted(tmp_path / "new")
    with destination(tmp_path / "new", QUESTION) as place:
        assert (place.work / "journal.jsonl").read_text() == "work"
        assert not list(place.files.iterdir())


def test_another_question_is_refused_where_one_was_interrupted(tmp_path: Path) -> None:
    interrupted(tmp_path / "new")
    with (
        pytest.raises(RunError, match=r"another question was interrupted there \(budget_ms differ\)"),
        destination(tmp_path / "new", {**QUESTION, "budget_ms": 0.6}),
    ):
        pass


def test_a_folder_with_other_files_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match="not empty, and an export never overwrites"), destination(tmp_path, QUESTION):
        pass
    with pytest.raises(RunError, match="this is a file"), destination(tmp_path / "mine.txt", QUESTION):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_made_is_refused() -> None:
    with (
        pytest.raises(RunError, match=r"/proc/new: it cannot be made: .*; name a folder where you may write"),
        destination("/proc/new", QUESTION),
    ):
        pass


def test_two_exports_at_once_are_refused(tmp_path: Path) -> None:
    with (
        destination(tmp_path / "new", QUESTION),
        pytest.raises(RunError, match="another export is at work there"),
        destination(tmp_path / "new", QUESTION),
    ):
        pass
