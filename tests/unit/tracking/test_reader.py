"""Journals are read into the store: what MLflow refuses, what fails for a moment, what was read before."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import TEMPORARILY_UNAVAILABLE

from autotailor import tracking
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store
from stored_runs import child_run, statuses

RUN = tracking.RunKey("net", "host", "abc123", {"space.width.*": [0.5, 1.0], "finetune.epochs": 1})


def test_a_key_that_mlflow_refuses_is_mapped_and_what_follows_it_is_written(store: Store, tmp_path: Path) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "compile"}, {"space.width.*": [0.5], "seed": 1}) as run:
        run.metrics({"width.*": 2.0, "blocks": 9.0})
        run.metrics({"after": 1.0})
    Reader(store, tmp_path / JOURNALS).read()
    child = child_run(store, "compile")
    assert child.data.params == {"space.width._x002A_": "[0.5]", "seed": "1"}
    assert child.data.metrics == {"width._x002A_": 2.0, "blocks": 9.0, "after": 1.0}
    assert child.info.status == "FINISHED"
    parent = store.client.get_run(store.parent(RUN))
    assert parent.data.params == {"space.width._x002A_": "[0.5, 1.0]", "finetune.epochs": "1"}


def test_what_is_refused_for_good_is_left_out_with_a_line_and_the_rest_is_written(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "search"}, {"": "no name", "seed": 1}) as run:
        run.metrics({"front": 3.0}, step=2**80)  # more than SQLite's integers hold
        (journal,) = (tmp_path / JOURNALS).iterdir()
        with journal.open("a") as stream:
            stream.write('["no event"]\n{"event": "metrics"}\nnot JSON\n')
        run.metrics({"after": 1.0})
    (tmp_path / JOURNALS / "0-foreign.jsonl").write_text('{"event": "start"}\n')
    assert Reader(store, tmp_path / JOURNALS).read()
    child = child_run(store, "search")
    assert child.data.params == {"seed": "1"}
    assert child.data.metrics == {"after": 1.0}
    assert child.info.status == "FINISHED"
    said = capsys.readouterr().out
    assert all(word in said for word in ("line 3 of", "line 4 of", "line 5 of", "'front'", "0-foreign.jsonl")), said
    assert [path.name for path in (tmp_path / JOURNALS).iterdir()] == ["0-foreign.refused"]


def test_artifacts_that_cannot_be_written_now_are_written_later(store: Store, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a\n1\n")
    (tmp_path / "mlruns").write_text("in the way")
    reader = Reader(store, tmp_path / JOURNALS)
    with tracking.child(tmp_path, RUN, {"rule": "report"}, {}) as run:
        run.artifact(table)
        run.metrics({"after": 1.0})
    with tracking.child(tmp_path, RUN, {"rule": "export"}, {}):
        pass
    assert not reader.read()
    assert child_run(store, "export").info.status == "FINISHED"  # no journal waits for another
    assert child_run(store, "report").info.status == "RUNNING"
    (tmp_path / "mlruns").unlink()
    assert reader.read()
    child = child_run(store, "report")
    assert [found.path for found in store.client.list_artifacts(child.info.run_id)] == ["table.csv"]
    assert (child.data.metrics, child.info.status) == ({"after": 1.0}, "FINISHED")


def test_a_locked_store_is_tried_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "measure"}, {}) as run:
        run.metrics({"latency": 1.0})
    log_batch: Callable[..., None] = store.client.log_batch

    def locked(*args: object, **kwargs: object) -> None:
        raise MlflowException("(sqlite3.OperationalError) database is locked", TEMPORARILY_UNAVAILABLE)

    reader = Reader(store, tmp_path / JOURNALS)
    assert reader.read() is not None
    with tracking.child(tmp_path, RUN, {"rule": "validate"}, {}) as run:
        run.metrics({"latency": 1.0})
    monkeypatch.setattr(store.client, "log_batch", locked)
    assert not reader.read()
    monkeypatch.setattr(store.client, "log_batch", log_batch)
    assert reader.read()
    assert child_run(store, "validate").data.metrics == {"latency": 1.0}


def _history(store: Store, run_id: str, key: str) -> list[tuple[int, float]]:
    return sorted((metric.step, metric.value) for metric in store.client.get_metric_history(run_id, key))


def test_a_journal_that_is_read_again_from_its_begin_changes_nothing(store: Store, tmp_path: Path) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "finetune"}, {"seed": 1}) as run:
        run.metrics({"loss": 2.0}, step=0)
        run.metrics({"loss": 1.0}, step=1)
        Reader(store, tmp_path / JOURNALS).read()
        (note,) = (tmp_path / JOURNALS).glob("*.done")
        assert note.read_text() == "3"
        note.unlink()  # a recorder was killed before it noted what it had written
        Reader(store, tmp_path / JOURNALS).read()
        child = child_run(store, "finetune").info.run_id
        assert _history(store, child, "loss") == [(0, 2.0), (1, 1.0)]
        assert _history(store, store.parent(RUN), "finetune/loss") == [(0, 2.0), (1, 1.0)]


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
    assert store.client.get_run(parent).data.metrics["finetune/loss"] == 1.0
    assert store.client.get_run(parent).data.params["finetune.epochs"] == "1"
    assert child.info.status == "FINISHED"


@pytest.mark.parametrize("device", ["bob's phone", 'bob\'s "phone"'])
def test_a_device_with_an_apostrophe_in_its_name_is_recorded_once(store: Store, tmp_path: Path, device: str) -> None:
    run, other = tracking.RunKey("net", device, "abc123"), tracking.RunKey("net", "bob's board", "abc123")
    for rule in ("compile", "profile"):
        with tracking.child(tmp_path, run, {"rule": rule}, {}):
            pass
        assert Reader(store, tmp_path / JOURNALS).read()
        assert child_run(store, rule).data.tags["mlflow.parentRunId"] == store.parent(run)
    assert store.parent(run) == store.parent(run) != store.parent(other)


def test_a_failing_rule_is_recorded_as_failed(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), tracking.child(tmp_path, RUN, {"rule": "search"}, {}):
        raise RuntimeError
    Reader(store, tmp_path / JOURNALS).read()
    assert statuses(store)["search"] == ["FAILED"]


def test_the_journal_of_a_killed_rule_is_closed_once(store: Store, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from autotailor import tracking\n"
        "with tracking.child(Path(sys.argv[1]), tracking.RunKey('net', 'host', 'abc123'), {'rule': 'profile'}, {}):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    for _ in range(2):
        Reader(store, tmp_path / JOURNALS).read()
    assert statuses(store)["profile"] == ["KILLED"]


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
    assert statuses(store)["compile"] == ["FINISHED"]


def test_a_journal_whose_writer_was_killed_before_the_first_line_does_not_wait_for_ever(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / JOURNALS).mkdir()
    new, old = (tmp_path / JOURNALS / f"{name}.jsonl" for name in ("new", "old"))
    for path in (new, old):
        path.write_text('{"event": "sta')
    os.utime(old, (1000.0, 1000.0))
    assert Reader(store, tmp_path / JOURNALS).read()
    assert [new.exists(), old.exists()] == [True, False]


def test_results_that_were_deleted_stay_deleted_while_a_recorder_runs(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "results" / ".tracking"
    with tracking.child(folder, RUN, {"rule": "search"}, {}):
        pass
    reader = Reader(store, folder / JOURNALS)
    assert reader.read()
    shutil.rmtree(tmp_path / "results")
    assert reader.read()
    assert not (tmp_path / "results").exists()
    with tracking.child(folder, RUN, {"rule": "report"}, {}):  # a run that goes on makes the folder anew
        pass
    assert reader.read()
    assert statuses(store)["report"] == ["FINISHED"]


def _of_another(folder: Path) -> tuple[Path, subprocess.Popen[bytes]]:
    """The only journal, as if a process that waits for its end had written it."""
    (path,) = (folder / JOURNALS).glob("*.jsonl")
    writer = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), "pid": writer.pid}), *rest, ""]))
    return path, writer


def test_a_rule_that_ends_while_its_journal_is_written_is_no_killed_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "search"}, {}) as run:
        run.metrics({"front": 1.0})
        run.metrics({"last": 2.0})
    path, writer = _of_another(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    log_metrics = store.log_metrics

    def ends_meanwhile(run_id: str, values: dict[str, float], time: int, step: int) -> None:
        log_metrics(run_id, values, time, step)
        if "front" in values:
            path.write_text("".join(lines))
            writer.kill()
            writer.wait()

    monkeypatch.setattr(store, "log_metrics", ends_meanwhile)
    reader = Reader(store, tmp_path / JOURNALS)
    reader.read()
    reader.read()
    assert statuses(store)["search"] == ["FINISHED"]
    assert child_run(store, "search").data.metrics == {"front": 1.0, "last": 2.0}
    assert not list((tmp_path / JOURNALS).iterdir())


def test_a_recorder_that_is_killed_behind_the_last_line_makes_no_killed_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a\n1\n")
    with tracking.child(tmp_path, RUN, {"rule": "report"}, {}) as run:
        run.artifact(table)
    path, writer = _of_another(tmp_path)
    writer.kill()
    writer.wait()

    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", kill)
        with pytest.raises(KeyboardInterrupt):
            Reader(store, path.parent).read()
    assert path.exists()
    assert Reader(store, path.parent).read()
    assert statuses(store)["report"] == ["FINISHED"]
    assert not list(path.parent.iterdir())
