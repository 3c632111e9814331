"""Runs that a store of MLflow holds."""

from __future__ import annotations

from mlflow.entities import Run

from autotailor.tracking.store import Store


def child_run(store: Store, rule: str) -> Run:
    """The one run of a rule in the experiment ``net``."""
    (run,) = store.client.search_runs([store.experiment("net")], f"tags.rule = '{rule}'")
    return run
