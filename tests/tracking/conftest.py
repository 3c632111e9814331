"""A pipeline that was recorded on a server, once for all tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracked_runs import Project, tailored_for_two_devices
from tracking_servers import MlflowServer, mlflow_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """An MLflow server whose store is PostgreSQL."""
    with mlflow_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="session")
def project(server: MlflowServer, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A folder in which a network was tailored twice: for a device, and for a budget of MACs."""
    made = Project(tmp_path_factory.mktemp("project"), server)
    tailored_for_two_devices(made)
    return made


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of screenshots, which the environment may name."""
    named = os.environ.get("AUTOTAILOR_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
