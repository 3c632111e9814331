from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autotailor import tracking
from autotailor.tracking import RunKey
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store

RUN = RunKey("net", "host", "abc123", {"finetune.epochs": 1})


def _runs(store: Store) -> dict[str, list[str]]:
    """Status of every run, by name."""
    found: dict[str, list[str]] = {}
    for run in store.client.search_runs([store.experiment("net")]):
        found.setdefault(str(run.info.run_name), []).append(run.info.status)
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Store:
    folder = tmp_path_factory.mktemp("mlflow")
    shutil.copy(empty_store, folder / "mlflow.db")
    return Store(folder / "mlflow.db", folder / "store.lock")


def test_a_rule_becomes_a_child_run_and_its_metrics_reach_the_parent(store: Store, tmp_path: Path) -> None:
    kept = tmp_path / "table.csv"
    kept.write_text("a\n1\n")
    with tracking.child(tmp_path, RUN, {"rule": "finetune", "git_commit": "c0ffee"}, {"epochs": 1}) as run:
        run.metrics({"loss": 2.0}, step=0)
        run.metrics({"loss": 1.0, "nothing": float("nan")}, step=1)
        run.artifact(kept)
    reader = Reader(store, tmp_path / JOURNALS)
    reader.read()
    reader.read()
    assert not list((tmp_path / JOURNALS).iterdir())
    parent = store.parent(RUN)
    (child,) = store.client.search_runs([store.experiment("net")], "tags.rule = 'finetune'")
    assert child.data.tags["mlflow.parentRunId"] == parent
    assert child.data.tags["git_commit"] == "c0ffee"
    assert child.data.params == {"epochs": "1"}
    assert [m.value for m in store.client.get_metric_history(child.info.run_id, "loss")] == [2.0, 1.0]
    assert [a.path for a in store.client.list_artifacts(child.info.run_id)] == ["table.csv"]
    assert store.client.get_run(parent).data.metrics["finetune.loss"] == 1.0
    assert store.client.get_run(parent).data.params == {"finetune.epochs": "1"}
    assert child.info.status == "FINISHED"


def test_a_failing_rule_is_recorded_as_failed(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), tracking.child(tmp_path, RUN, {"rule": "search"}, {}):
        raise RuntimeError
    Reader(store, tmp_path / JOURNALS).read()
    assert _runs(store)["search"] == ["FAILED"]


def test_the_journal_of_a_killed_rule_is_closed_once(store: Store, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from autotailor import tracking\n"
        "with tracking.child(Path(sys.argv[1]), tracking.RunKey('net', 'host', 'abc123'), {'rule': 'profile'}, {}):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    for _ in range(2):
        Reader(store, tmp_path / JOURNALS).read()
    assert _runs(store)["profile"] == ["KILLED"]


def test_a_journal_never_makes_two_runs_and_a_torn_line_waits(store: Store, tmp_path: Path) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "compile"}, {}) as run:
        run.metrics({"blocks": 9})
        (path,) = (tmp_path / JOURNALS).iterdir()
        with path.open("a") as stream:
            stream.write('{"event": "met')
            stream.flush()
            Reader(store, tmp_path / JOURNALS).read()  # a recorder that dies here
            Reader(store, tmp_path / JOURNALS).read()
            path.write_text(path.read_text().removesuffix('{"event": "met'))
    Reader(store, tmp_path / JOURNALS).read()
    assert _runs(store)["compile"] == ["FINISHED"]


def test_the_recorder_creates_store_and_parent_first_and_ends_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "tracking"
    assert tracking.start(tmp_path / "mlflow.db", folder, RUN), (folder / "recorder.log").read_text()
    with tracking.child(folder, RUN, {"rule": "report"}, {}):
        pass
    tracking.stop(folder, "FINISHED")
    store = Store(tmp_path / "mlflow.db", folder / "store.lock")
    assert sorted(_runs(store).values()) == [["FINISHED"], ["FINISHED"]]
    assert not list((folder / JOURNALS).iterdir())


def test_a_broken_store_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("no database")
    folder = tmp_path / "tracking"
    assert not tracking.start(tmp_path / "mlflow.db", folder, RUN)
    with tracking.child(folder, RUN, {"rule": "report"}, {}):
        pass
    tracking.stop(folder, "FINISHED")
    (journal,) = (folder / JOURNALS).iterdir()
    assert [json.loads(line)["event"] for line in journal.read_text().splitlines()] == ["start", "end"]


def test_git_commit_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracking.git_commit(tmp_path) == "unknown"
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert tracking.git_commit(Path(__file__).parent) == "unknown"
