import os
import time
from pathlib import Path

from autotailor.work import Work

OLD, NEW = {"autotailor.finetuning.training.loop": "a"}, {"autotailor.finetuning.training.loop": "b"}


def work(base: Path, code: dict[str, str], key: object = 1, *, is_training: bool = True) -> Work:
    return Work.of(base, "finetune", ["net"], key, code, is_training=is_training)


def test_a_training_goes_on_under_other_code_and_says_what_it_was_begun_with(tmp_path: Path) -> None:
    assert work(tmp_path, OLD).begin() == OLD
    (work(tmp_path, OLD).folder / "finetune.ckpt").write_text("half")
    later = work(tmp_path, NEW)
    assert later.begin() == OLD
    assert (later.folder / "finetune.ckpt").read_text() == "half"


def test_other_rules_begin_anew_under_other_code(tmp_path: Path) -> None:
    assert work(tmp_path, OLD, is_training=False).folder != work(tmp_path, NEW, is_training=False).folder
    assert work(tmp_path, OLD).folder != work(tmp_path, OLD, key=2).folder


def test_a_finished_training_is_only_gone_on_with_under_its_own_code(tmp_path: Path) -> None:
    first = work(tmp_path, OLD)
    first.begin()
    (first.folder / "finetune.ckpt").write_text("whole")
    first.finish()
    work(tmp_path, OLD).begin()
    assert (first.folder / "finetune.ckpt").read_text() == "whole"
    assert work(tmp_path, NEW).begin() == NEW
    assert not (first.folder / "finetune.ckpt").exists()


def test_finishing_keeps_journals_and_what_is_half_finished_and_recent(tmp_path: Path) -> None:
    done, half, old, now = (work(tmp_path, OLD, key) for key in range(4))
    for each in (done, half, old, now):
        each.begin()
    done.finish()
    month = time.time() - 30 * 24 * 3600
    for path in (*old.folder.iterdir(), old.folder):
        os.utime(path, (month, month))
    (tmp_path / "net" / "finetune-by-hand").mkdir()
    (now.folder / "subnet").mkdir()
    (now.folder / "subnet" / "model.onnx").touch()
    (now.folder / "candidates.jsonl").touch()
    now.finish()
    kept = sorted(path.name for path in (tmp_path / "net").iterdir())
    assert kept == sorted([half.folder.name, now.folder.name, "finetune-by-hand"])
    assert sorted(path.name for path in now.folder.iterdir()) == ["begun.json", "candidates.jsonl", "done.json"]


def test_what_a_killed_write_left_is_swept(tmp_path: Path) -> None:
    first = work(tmp_path, OLD)
    first.begin()
    (first.folder / ".finetune.ckpt.a1b2c3d4").mkdir()
    (first.folder / ".finetune.ckpt.a1b2c3d4" / "finetune.ckpt").touch()
    (first.folder / ".hidden").touch()
    first.begin()
    assert sorted(path.name for path in first.folder.iterdir()) == [".hidden", "begun.json"]
