"""A store that was moved, its pages, and that nothing is sent to MLflow's makers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from autotailor import tracking
from autotailor.tracking import ui
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store

RUN = tracking.RunKey("net of mine", "host", "abc123", {})
ROOT = Path(__file__).parents[3]


def _user_environment() -> dict[str, str]:
    """The environment without what makes MLflow believe that it is tested, and without a choice about telemetry."""
    names = ("MLFLOW", "PYTEST", "CI", "GITHUB", "DO_NOT_TRACK", "BUILD", "TF_BUILD", "JENKINS", "CODEBUILD")
    return {key: value for key, value in os.environ.items() if not key.startswith(names)}


def _record(store: Store, folder: Path, rule: str, text: str) -> None:
    """A child run with one artifact."""
    table = folder / f"{rule}.csv"
    table.write_text(text)
    with tracking.child(folder / "tracking", RUN, {"rule": rule}, {}) as run:
        run.artifact(table)
    (folder / "tracking").mkdir(exist_ok=True)
    assert Reader(store, folder / "tracking" / JOURNALS).read()


@pytest.fixture
def old(tmp_path: Path, empty_store: Path) -> Path:
    """A folder with an empty store, to be moved."""
    folder = tmp_path / "old place"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    return folder


def _open(folder: Path) -> Store:
    return Store(folder / "mlflow.db", folder / "store.lock")


def _artifacts(store: Store) -> dict[str, str]:
    """Content of each run's artifacts, by name."""
    found = {}
    for run in store.client.search_runs([store.experiment(RUN.model)], "tags.`autotailor.kind` = 'child'"):
        for artifact in store.client.list_artifacts(run.info.run_id):
            found[artifact.path] = Path(store.client.download_artifacts(run.info.run_id, artifact.path)).read_text()
    return found


def test_a_moved_store_keeps_its_artifacts_and_new_ones_lie_beside_it(tmp_path: Path, old: Path) -> None:
    new = tmp_path / "a" / "new place"
    _record(_open(old), old, "search", "a\n1\n")
    new.parent.mkdir()
    old.rename(new)
    store = _open(new)
    assert _artifacts(store) == {"search.csv": "a\n1\n"}
    _record(store, new, "measure", "b\n2\n")
    assert not old.exists()
    assert sorted(path.name for path in (new / "mlruns").rglob("*.csv")) == ["measure.csv", "search.csv"]


def test_the_artifacts_of_somebody_else_stay_where_they_are(old: Path) -> None:
    store = _open(old)
    elsewhere = (old / "elsewhere").as_uri()
    other = store.client.create_experiment("theirs", artifact_location=elsewhere)
    assert _open(old).client.get_experiment(other).artifact_location == elsewhere


def test_mlflow_sends_nothing_when_the_store_is_opened() -> None:
    code = (
        "import autotailor.tracking.store\n"
        "from mlflow.telemetry import get_telemetry_client\n"
        "assert get_telemetry_client() is None, 'telemetry'"
    )
    subprocess.run([sys.executable, "-c", code], env=_user_environment(), check=True)


def test_dvc_sends_nothing() -> None:
    asked = [sys.executable, "-m", "dvc", "config", "core.analytics"]
    answer = subprocess.run(asked, cwd=ROOT, env=_user_environment(), capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "false"


def _get(address: str, server: subprocess.Popen[bytes]) -> str:
    """What a server answers once it is up."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            assert server.poll() is None, "the server ended"
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer")


def test_the_pages_open_where_the_store_is_now_and_send_nothing(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new"
    _record(_open(old), old, "search", "a\n1\n")
    old.rename(new)
    started: list[tuple[str, list[str], str | None]] = []
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    monkeypatch.setattr(sys, "argv", ["ui", str(new / "mlflow.db"), "--port", "5000"])
    monkeypatch.setattr(
        os, "execv", lambda path, args: started.append((path, args, os.environ.get("MLFLOW_DISABLE_TELEMETRY")))
    )
    ui.main()
    ((path, args, telemetry),) = started
    assert (path, args[1:4], telemetry) == (sys.executable, ["-m", "mlflow", "ui"], "true")
    assert f"sqlite:///{new / 'mlflow.db'}" in args
    assert args[-2:] == ["--port", "5000"]
    with sqlite3.connect(new / "mlflow.db") as tables:
        places = [row[0] for row in tables.execute("SELECT artifact_uri FROM runs")]
    assert places
    assert all(place.startswith((new / "mlruns").as_uri()) for place in places)


@pytest.mark.sweep  # MLflow's server needs a quarter of a minute
def test_the_pages_of_a_moved_store_show_its_artifacts_and_send_nothing(tmp_path: Path, old: Path) -> None:
    new = tmp_path / "new"
    store = _open(old)
    _record(store, old, "search", "a\n1\n")
    (run,) = store.client.search_runs([store.experiment(RUN.model)], "tags.rule = 'search'")
    old.rename(new)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    recipe = subprocess.run(["make", "-n", "ui"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m autotailor.tracking.ui mlflow.db" in recipe
    command = [sys.executable, "-m", "autotailor.tracking.ui", "mlflow.db", "--port", str(port)]
    server = subprocess.Popen(command, cwd=new, env=_user_environment(), start_new_session=True)
    try:
        page = f"http://127.0.0.1:{port}"
        asked = f"{page}/ajax-api/2.0/mlflow/artifacts/list?run_id={run.info.run_id}"
        assert [file["path"] for file in json.loads(_get(asked, server))["files"]] == ["search.csv"]
        telemetry = json.loads(_get(f"{page}/ajax-api/3.0/mlflow/ui-telemetry", server))
        assert telemetry["disable_ui_telemetry"] is True
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)
