"""What the tests of tracking share."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotailor.tracking.store import Store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQLite file of a store without experiments; MLflow needs seconds to make one, a test copies it."""
    folder = tmp_path_factory.mktemp("empty")
    Store(folder / "mlflow.db", folder / "store.lock")
    return folder / "mlflow.db"
