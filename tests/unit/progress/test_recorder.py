"""Records of running rules."""

import logging
from pathlib import Path

import pytest

from autotailor.progress import begin, read_record, record_of, recorder, step
from autotailor.progress.bars import track


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(recorder, "SECONDS", 0.01)
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    return tmp_path / "logs" / "finetune.log"


def test_a_finished_rule_has_its_result_its_warnings_and_its_last_step(log: Path) -> None:
    running = begin(log, "finetune")
    logging.getLogger("autotailor.x").info("epoch %d of 2", 1)
    logging.getLogger("foreign").info("of a library")
    logging.getLogger("py.warnings").warning("deprecated, says a library")
    logging.getLogger("autotailor.x").warning("finetune: careful")  # each display names the rule itself
    logging.getLogger("autotailor.x").warning("careful")
    assert list(track([7, 8], "steps")) == [7, 8]
    running.finish("largest 96 %")
    logging.getLogger("autotailor.x").info("after the end")
    step("after the end")
    found = read_record(record_of(log))
    assert found is not None
    assert (found.rule, found.outcome, found.result, found.warnings) == (
        "finetune", "done", "largest 96 %", ("careful",),
    )  # fmt: skip
    assert found.now == "epoch 1 of 2 · steps 2 of 2"


def test_a_rule_without_an_end_is_neither_done_nor_failed_and_remembers_how_long_the_last_one_took(log: Path) -> None:
    begin(log, "finetune").finish("")
    first = read_record(record_of(log))
    begin(log, "finetune").fail()
    failed = read_record(record_of(log))
    running = begin(log, "finetune")
    now = read_record(record_of(log))
    running.fail()
    assert first is not None
    assert failed is not None
    assert now is not None
    assert (failed.outcome, now.outcome, now.ended) == ("failed", "", None)
    assert now.usual_seconds == failed.usual_seconds == first.seconds


@pytest.mark.parametrize("content", ["", "[]", '{"rule": 1, "unknown": 2', "{}"])
def test_what_is_no_record_is_read_as_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.progress.json").write_text(content)
    assert read_record(tmp_path / "x.progress.json") is None
