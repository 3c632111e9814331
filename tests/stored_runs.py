"""Runs that a store of MLflow holds."""

import os
from pathlib import Path

from mlflow.entities import Run

from autotailor import tracking
from autotailor.tracking.address import address
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store

RUN = tracking.RunKey("net of mine", "host", "abc123", {})


def child_run(store: Store, rule: str) -> Run:
    """The one run of a rule in the experiment ``net``."""
    (run,) = store.client.search_runs([store.experiment("net")], f"tags.rule = '{rule}'")
    return run


def statuses(store: Store) -> dict[str, list[str]]:
    """Status of every run of the experiment ``net``, by name."""
    found: dict[str, list[str]] = {}
    for run in store.client.search_runs([store.experiment("net")]):
        found.setdefault(str(run.info.run_name), []).append(run.info.status)
    return found


def opened(folder: Path) -> Store:
    """The store in a folder."""
    return Store(address(folder / "mlflow.db", {}), folder / "store.lock")


def record(store: Store, folder: Path, rule: str, text: str) -> None:
    """A child run of ``RUN`` with one artifact."""
    table = folder / f"{rule}.csv"
    table.write_text(text)
    with tracking.child(folder / "tracking", RUN, {"rule": rule}, {}) as run:
        run.artifact(table)
    (folder / "tracking").mkdir(exist_ok=True)
    assert Reader(store, folder / "tracking" / JOURNALS).read()


def user_environment() -> dict[str, str]:
    """The environment without what makes MLflow believe that it is tested, and without a choice about telemetry."""
    names = ("MLFLOW", "PYTEST", "CI", "GITHUB", "DO_NOT_TRACK", "BUILD", "TF_BUILD", "JENKINS", "CODEBUILD")
    return {key: value for key, value in os.environ.items() if not key.startswith(names)}
