import subprocess
from pathlib import Path

import pytest

from autotailor import config
from autotailor.project.folder import HIDDEN, TEMPLATE, ProjectError, create


def test_the_project_holds_every_file_of_the_template(tmp_path: Path) -> None:
    written = create(tmp_path / "new" / "demo")
    names = {path.relative_to(tmp_path / "new" / "demo").as_posix() for path in written}
    template = {path.relative_to(TEMPLATE).as_posix() for path in TEMPLATE.rglob("*") if path.is_file()}
    assert names == {f".{name}" if name in HIDDEN else name for name in template}
    assert {"README.md", ".gitignore", "conf/model/mine.yaml", "models/README.md", "photos/README.md"} <= names
    assert all(path.is_file() for path in written)


def test_the_configuration_to_fill_in_is_one_of_the_schema(tmp_path: Path) -> None:
    create(tmp_path)
    composed = config.compose(tmp_path / "conf", "mine", "board")
    config.validate(composed)
    assert (composed["model"]["name"], composed["device"]["name"]) == ("mine", "board")
    assert (composed["data"]["kind"], composed["data"]["root"]) == ("folder", "photos")
    assert composed["device"]["transport"] == "ssh"


def test_an_empty_folder_becomes_a_project_and_one_with_files_does_not(tmp_path: Path) -> None:
    create(tmp_path)
    (tmp_path / "conf" / "model" / "mine.yaml").write_text("filled in")
    with pytest.raises(ProjectError, match=r"the folder is not empty \(\.dvcignore, \.gitignore, README\.md \.\.\.\)"):
        create(tmp_path)
    assert (tmp_path / "conf" / "model" / "mine.yaml").read_text() == "filled in"


def test_a_file_does_not_become_a_project(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ProjectError, match="notes: this is a file; name a new folder"):
        create(tmp_path / "notes")
    with pytest.raises(ProjectError, match=r"below: a project cannot be written there \(Not a directory\)"):
        create(tmp_path / "notes" / "below")


def test_git_leaves_out_what_is_large_and_what_runs_leave(tmp_path: Path) -> None:
    written = create(tmp_path)
    for name in ("results/mine/x", "luts/x", "logs/x", "mlflow.db", "photos/cat/1.jpg", "models/mine.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "models" / "mine.onnx.dvc").touch()
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    kept = {path.relative_to(tmp_path).as_posix() for path in written} - {"photos/README.md"}
    assert set(listed.split()) == kept | {"models/mine.onnx.dvc"}
