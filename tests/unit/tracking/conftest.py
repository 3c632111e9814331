"""What the tests of tracking share."""

import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from autotailor.tracking.address import VARIABLE, address
from autotailor.tracking.store import Store
from stored_runs import opened


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user's environment says of a server does not reach the tests."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQLite file of a store without experiments; MLflow makes one in seconds, for all workers; tests copy it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "empty_store"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            folder.mkdir()
            Store(address(folder / "mlflow.db", {}), folder / "store.lock")
    return folder / "mlflow.db"


@pytest.fixture
def store(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store, whose address is in the environment as in that of a recorder."""
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    monkeypatch.setenv(VARIABLE, address(tmp_path / "mlflow.db", {}).uri)
    return opened(tmp_path)


@pytest.fixture
def old(tmp_path: Path, empty_store: Path) -> Path:
    """A folder with an empty store, to be moved."""
    folder = tmp_path / "old place"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    return folder
