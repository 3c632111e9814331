"""What a rule writes of itself, without MLflow."""

import os
import shutil
from pathlib import Path

import pytest

from autotailor import tracking

RUN = tracking.RunKey("net", "host", "abc123", {})


def test_git_commit_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracking.git_commit(tmp_path) == "unknown"
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert tracking.git_commit(Path(__file__).parent) == "unknown"


def test_a_rule_goes_on_where_its_journal_was_deleted_with_all_results(tmp_path: Path) -> None:
    results, table = tmp_path / "results", tmp_path / "table.csv"
    table.write_text("a\n1\n")
    with tracking.child(results / ".tracking", RUN, {"rule": "export"}, {}) as run:
        shutil.rmtree(results)
        run.metrics({"loss": 1.0})
        run.artifact(table)
        run.model(tracking.ExportedModel("budget_01", table, table, {}))
    assert not results.exists()
