"""The pages of a store, and that nothing is sent to MLflow's makers."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest

from autotailor.tracking import ui
from stored_runs import RUN, opened, record, user_environment

ROOT = Path(__file__).parents[3]


def _get(address: str, server: subprocess.Popen[bytes]) -> str:
    """What a server answers once it is up."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:
            assert server.poll() is None, "the server ended"
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer")


def test_without_a_store_the_usage_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ui"])
    with pytest.raises(SystemExit, match=r"usage: .* mlflow\.db"):
        ui.main()


def test_the_pages_open_where_the_store_is_now_and_send_nothing(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new"
    record(opened(old), old, "search", "a\n1\n")
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
    with (ROOT / "pyproject.toml").open("rb") as stream:
        apps = tomllib.load(stream)["project"]["entry-points"]["mlflow.app"]
    assert apps[args[args.index("--app-name") + 1]] == f"{ui.pages.__module__}:{ui.pages.__name__}"
    with sqlite3.connect(new / "mlflow.db") as tables:
        places = [row[0] for row in tables.execute("SELECT artifact_uri FROM runs")]
    assert places
    assert all(place.startswith((new / "mlruns").as_uri()) for place in places)


@pytest.mark.sweep  # MLflow's server needs a quarter of a minute
def test_the_pages_of_a_moved_store_show_its_artifacts_and_send_nothing(tmp_path: Path, old: Path) -> None:
    new = tmp_path / "new"
    store = opened(old)
    record(store, old, "search", "a\n1\n")
    (run,) = store.client.search_runs([store.experiment(RUN.model)], "tags.rule = 'search'")
    old.rename(new)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    recipe = subprocess.run(["make", "-n", "ui"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m autotailor.tracking.ui mlflow.db" in recipe
    command = [sys.executable, "-m", "autotailor.tracking.ui", "mlflow.db", "--port", str(port)]
    server = subprocess.Popen(command, cwd=new, env=user_environment(), start_new_session=True)
    try:
        page = f"http://127.0.0.1:{port}"
        asked = f"{page}/ajax-api/2.0/mlflow/artifacts/list?run_id={run.info.run_id}"
        assert [file["path"] for file in json.loads(_get(asked, server))["files"]] == ["search.csv"]
        assert ui.SCRIPT in _get(page, server)
        telemetry = json.loads(_get(f"{page}/ajax-api/3.0/mlflow/ui-telemetry", server))
        assert telemetry["disable_ui_telemetry"] is True
    finally:
        os.killpg(server.pid, 15)
        server.wait(30)
