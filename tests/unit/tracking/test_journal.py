"""What a rule writes of itself, without MLflow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autotailor import tracking


def test_git_commit_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracking.git_commit(tmp_path) == "unknown"
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert tracking.git_commit(Path(__file__).parent) == "unknown"
