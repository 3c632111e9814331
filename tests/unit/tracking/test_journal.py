"""What a rule writes of itself, without MLflow."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor import tracking
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store
from stored_runs import child_run, user_environment

RUN = tracking.RunKey("net", "host", "abc123", {})

ROOT = Path(__file__).parents[3]


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


def test_addresses_serials_keys_and_home_folders_are_told_to_nobody(store: Store, tmp_path: Path) -> None:
    home = str(Path.home())
    secret = {
        "device.address": "orin.secret.example",
        "device.serial": "SERIAL77",
        "device.key": f"{home}/.ssh/id_secret",
        "device.name": "orin",
        "data.folder": f"{home}/photos",
        "model.source": "/home/somebody/net.onnx",
        "space": {"layers": [f"{home}/layers"]},
    }
    key = tracking.RunKey("net", "orin", "def456", secret)
    with tracking.child(tmp_path, key, {"rule": "profile", "where": f"{home}/results"}, secret):
        (journal,) = (tmp_path / JOURNALS).iterdir()
        told = journal.read_text()
    Reader(store, tmp_path / JOURNALS).read()
    for run in (child_run(store, "profile"), store.client.get_run(store.parent(key))):
        assert run.data.params == {
            "device.name": "orin",
            "data.folder": "~/photos",
            "model.source": "~/net.onnx",
            "space": "{'layers': ['~/layers']}",
        }
        told += json.dumps([run.data.params, run.data.tags])
    for word in ("secret.example", "SERIAL77", "id_secret", f"{home}/", "somebody"):
        assert word not in told, word


def test_mlflow_sends_nothing_when_the_store_is_opened() -> None:
    code = (
        "import autotailor.tracking.store\n"
        "from mlflow.telemetry import get_telemetry_client\n"
        "assert get_telemetry_client() is None, 'telemetry'"
    )
    subprocess.run([sys.executable, "-c", code], env=user_environment(), check=True)


def test_dvc_sends_nothing() -> None:
    asked = [sys.executable, "-m", "dvc", "config", "core.analytics"]
    answer = subprocess.run(asked, cwd=ROOT, env=user_environment(), capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "false"
