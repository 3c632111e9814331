"""Where runs are recorded: in a SQLite file beside the results, or where ``MLFLOW_TRACKING_URI`` says."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from autotailor.ir.errors import AutoTailorError

VARIABLE = "MLFLOW_TRACKING_URI"
SQLITE = "sqlite:///"
TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    TIMEOUT: "10",  # seconds; MLflow waits for 120, and so do files (``patient``)
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # MLflow's 7 take minutes; the recorder tries again anyway
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # the log holds what went wrong, and no links
}
"""What the recorder's process sets unless the user has set it: no telemetry, and no long waits for a server."""
FILE_SECONDS = "120"
"""For a server to take one file."""


class TrackingError(AutoTailorError):
    """The address of the store is one that cannot be recorded to."""


@dataclass(frozen=True)
class Address:
    """Of a store of MLflow.

    Attributes:
        uri: for MLflow's client.
        database: the SQLite file; None for a server or another database.
    """

    uri: str
    database: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether the store is a SQLite file, with its artifacts beside it."""
        return self.database is not None

    def __str__(self) -> str:
        """The address without a user's name and password."""
        parts = urlsplit(self.uri)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def patient() -> Iterator[None]:
    """Lets the requests of a block, which carry files, take longer than others, unless the user has set a time."""
    before = os.environ.get(TIMEOUT)
    if before != SETTINGS[TIMEOUT]:
        yield
        return
    os.environ[TIMEOUT] = FILE_SECONDS
    try:
        yield
    finally:
        os.environ[TIMEOUT] = before


def address(database: Path, environment: Mapping[str, str] = os.environ) -> Address:
    """The store of runs.

    Args:
        database: the SQLite file that is the store where the environment names none.
        environment: ``MLFLOW_TRACKING_URI`` may name a server (``https://...``) or a database.

    Raises:
        TrackingError: the environment names a folder, which MLflow 3 no longer writes to.
    """
    uri = environment.get(VARIABLE, "").strip()
    if not uri:
        return _sqlite(database)
    if uri.startswith(SQLITE):
        return _sqlite(Path(uri.removeprefix(SQLITE)))
    if urlsplit(uri).scheme in ("", "file"):
        raise TrackingError(
            f"{VARIABLE} is {uri!r}, but MLflow writes to no folder; name a server (http://127.0.0.1:5000) or a SQLite "
            f"file (sqlite:////folder/mlflow.db), or unset the variable to record to {database.name} beside the results"
        )
    return Address(uri.rstrip("/"))


def _sqlite(database: Path) -> Address:
    path = database.resolve()
    return Address(f"{SQLITE}{path}", path)
