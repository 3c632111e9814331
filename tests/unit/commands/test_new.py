from pathlib import Path

import pytest

from autotailor.__main__ import main


def test_a_new_project_says_the_next_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(tmp_path / "my project")]) == 0
    said = capsys.readouterr().out
    assert f"cd '{tmp_path}/my project'" in said
    assert "autotailor run" in said
    assert (tmp_path / "my project" / "README.md").is_file()


def test_a_folder_with_files_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").touch()
    assert main(["new", str(tmp_path)]) == 1
    assert "the folder is not empty (thesis.tex); name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
