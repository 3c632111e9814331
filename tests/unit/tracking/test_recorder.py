"""Recorders write journals into the store, side by side and whatever the store does."""

import json
import shutil
import threading
from pathlib import Path

from autotailor import tracking
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store
from stored_runs import child_run, opened, statuses

RUN = tracking.RunKey("net", "host", "abc123", {"space.width.*": [0.5, 1.0], "finetune.epochs": 1})


def _history(store: Store, run_id: str, key: str) -> list[tuple[int, float]]:
    return sorted((metric.step, metric.value) for metric in store.client.get_metric_history(run_id, key))


def test_two_recorders_at_once_write_everything_once(tmp_path: Path, empty_store: Path) -> None:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    for number in range(6):
        with tracking.child(tmp_path, RUN, {"rule": f"rule{number}"}, {"seed": number}) as run:
            for step in range(10):
                run.metrics({"loss": float(step)}, step)
    errors: list[BaseException] = []
    start = threading.Barrier(2)

    def record() -> None:
        try:
            reader = Reader(opened(tmp_path), tmp_path / JOURNALS)
            start.wait()
            for _ in range(3):
                reader.read()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=record) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    store = opened(tmp_path)
    runs = store.client.search_runs([store.experiment("net")])
    names = sorted(str(run.info.run_name) for run in runs)
    assert names == ["host (abc123)", *(f"rule{number}" for number in range(6))]
    assert {run.info.status for run in runs if run.info.run_name.startswith("rule")} == {"FINISHED"}
    for number in range(6):
        child = child_run(store, f"rule{number}").info.run_id
        assert _history(store, child, "loss") == [(step, float(step)) for step in range(10)]
        expected = [(step, float(step)) for step in range(10)]
        assert _history(store, store.parent(RUN), f"rule{number}/loss") == expected


def test_the_recorder_creates_store_and_parent_first_and_ends_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "tracking"
    assert tracking.start(tmp_path / "mlflow.db", folder, RUN), (folder / "recorder.log").read_text()
    with tracking.child(folder, RUN, {"rule": "report"}, {}):
        pass
    assert tracking.stop(folder, "FINISHED")
    assert sorted(statuses(opened(tmp_path)).values()) == [["FINISHED"], ["FINISHED"]]
    assert not list((folder / JOURNALS).iterdir())


def test_a_broken_store_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("no database")
    folder = tmp_path / "tracking"
    assert not tracking.start(tmp_path / "mlflow.db", folder, RUN)
    with tracking.child(folder, RUN, {"rule": "report"}, {}):
        pass
    assert not tracking.stop(folder, "FINISHED")  # what waits is told
    journals = sorted((folder / JOURNALS).iterdir())
    events = [[json.loads(line)["event"] for line in journal.read_text().splitlines()] for journal in journals]
    assert events == [["begin", "end"], ["start", "end"]]
