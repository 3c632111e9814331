"""Which store is recorded to, and what waits while a server does not answer."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import ENDPOINT_NOT_FOUND, RESOURCE_DOES_NOT_EXIST
from requests import HTTPError, Response
from requests.exceptions import RetryError

from autotailor import tracking
from autotailor.tracking.address import FILE_SECONDS, TIMEOUT, Address, address, patient
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.recorder import origin
from autotailor.tracking.store import Store, refused_for_good
from stored_runs import opened, statuses

RUN = tracking.RunKey("net", "host", "abc123", {})


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_the_environment_names_the_store(tmp_path: Path) -> None:
    mine = tmp_path / "mlflow.db"
    assert address(mine, {}) == Address(f"sqlite:///{mine}", mine)
    assert address(mine, {"MLFLOW_TRACKING_URI": " "}) == address(mine, {})
    other = address(mine, {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path / 'other.db'}"})
    assert (other.is_local, other.database) == (True, tmp_path / "other.db")
    server = address(mine, {"MLFLOW_TRACKING_URI": "https://me:secret@mlflow.example/sub/"})
    assert (server.is_local, server.uri) == (False, "https://me:secret@mlflow.example/sub")
    assert str(server) == "https://mlflow.example/sub"


@pytest.mark.parametrize("folder", ["mlruns", "/somewhere/mlruns", "file:///somewhere/mlruns"])
def test_a_folder_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", folder)
    with pytest.raises(tracking.TrackingError, match=r"sqlite:////folder/mlflow.db"):
        tracking.start(tmp_path / "mlflow.db", tmp_path / "tracking", RUN)
    assert not list(tmp_path.iterdir())


def test_what_a_server_does_not_take_is_published_later_with_its_times(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        with tracking.child(tmp_path, RUN, {"rule": f"rule{number}"}, {}) as run:
            run.metrics({"loss": 1.0})
    first = json.loads(min((tmp_path / JOURNALS).iterdir()).read_text().splitlines()[0])
    with silent_port() as port:
        reader = Reader(Store(Address(f"http://127.0.0.1:{port}"), tmp_path / "store.lock"), tmp_path / JOURNALS)
        assert reader.is_away  # a server that was not asked yet is not waited for
        asked, follow = list[Path](), reader._follow
        monkeypatch.setattr(reader, "_follow", lambda path: asked.append(path) or follow(path))
        assert not reader.read()
        assert reader.is_away
        assert len(asked) == 1  # each further journal would wait as long again
    assert len(list((tmp_path / JOURNALS).glob("*.jsonl"))) == 3
    again = Reader(opened(tmp_path), tmp_path / JOURNALS)
    assert not again.is_away
    assert again.read()
    assert statuses(store) == {"host (abc123)": ["RUNNING"], **{f"rule{k}": ["FINISHED"] for k in range(3)}}
    (found,) = store.client.search_runs([store.experiment("net")], "tags.rule = 'rule0'")
    assert found.info.start_time == first["time"]


def test_a_page_that_is_not_found_may_be_there_later_and_a_run_that_is_gone_is_not() -> None:
    assert refused_for_good(MlflowException("no such run", RESOURCE_DOES_NOT_EXIST))
    assert not refused_for_good(MlflowException("API request to endpoint failed", ENDPOINT_NOT_FOUND))


@pytest.mark.parametrize(("status", "for_good"), [(413, True), (415, True), (401, False), (429, False), (502, False)])
def test_a_file_that_is_too_large_is_refused_for_good_and_a_password_may_be_mended(status: int, for_good: bool) -> None:
    answer = Response()
    answer.status_code = status
    assert refused_for_good(HTTPError("no", response=answer)) is for_good


def test_a_journal_that_a_server_answers_with_errors_holds_no_other_up(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        with tracking.child(tmp_path, RUN, {"rule": name}, {}) as run:
            run.metrics({name: 1.0})
    store.is_local = False  # as a server is
    log_batch = store.client.log_batch

    def failing(run_id: str, **content: list[Metric]) -> None:
        if any("first" in metric.key for metric in content.get("metrics", [])):
            raise MlflowException("too many 500 error responses") from RetryError()
        log_batch(run_id, **content)

    monkeypatch.setattr(store.client, "log_batch", failing)
    reader = Reader(store, tmp_path / JOURNALS)
    assert not reader.read()
    assert reader.is_away
    assert {name: found for name, (found,) in statuses(store).items() if "host" not in name} == {
        "first": "RUNNING",
        "second": "FINISHED",
    }
    monkeypatch.setattr(store.client, "log_batch", log_batch)
    assert reader.read()
    assert not reader.is_away
    assert statuses(store)["first"] == ["FINISHED"]


def test_files_get_more_time_than_other_requests_unless_the_user_has_set_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIMEOUT, "10")
    with patient():
        assert os.environ[TIMEOUT] == FILE_SECONDS
    assert os.environ[TIMEOUT] == "10"
    monkeypatch.setenv(TIMEOUT, "7")
    with patient():
        assert os.environ[TIMEOUT] == "7"


def test_on_a_server_two_folders_have_parents_of_their_own(store: Store, tmp_path: Path) -> None:
    assert origin(tmp_path) == origin(tmp_path)
    parents = set()
    for folder in (tmp_path / "mine", tmp_path / "theirs"):
        folder.mkdir()
        mine = partial(origin, folder)
        shared = Store(address(tmp_path / "mlflow.db", {}), tmp_path / "store.lock", origin=mine)
        shared.is_local = False  # as a server is
        parents |= {shared.parent(RUN), shared.parent(RUN)}
    assert len(parents) == 2


def test_an_experiment_is_one_of_model_training_and_a_choice_of_the_user_stays(store: Store) -> None:
    kind = "mlflow.experimentKind"
    made = store.experiment("net")
    assert store.client.get_experiment(made).tags[kind] == "custom_model_development"
    store.client.set_experiment_tag(made, kind, "genai_development")
    assert store.client.get_experiment(store.experiment("net")).tags[kind] == "genai_development"
    older = store.client.create_experiment("older")
    assert store.client.get_experiment(older).tags.get(kind) is None
    assert store.experiment("older") == older
    assert store.client.get_experiment(older).tags[kind] == "custom_model_development"
