"""What the tests of tracking share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autotailor.tracking.store import Store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQLite file of a store without experiments; MLflow needs seconds to make one, a test copies it."""
    folder = tmp_path_factory.mktemp("empty")
    Store(folder / "mlflow.db", folder / "store.lock")
    return folder / "mlflow.db"


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Store:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    return Store(tmp_path / "mlflow.db", tmp_path / "store.lock")


@pytest.fixture
def old(tmp_path: Path, empty_store: Path) -> Path:
    """A folder with an empty store, to be moved."""
    folder = tmp_path / "old place"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    return folder
