"""Serves MLflow's pages for a store: ``python -m autotailor.tracking.ui mlflow.db [arguments of mlflow ui]``.

Telemetry of MLflow is switched off, and the addresses of artifacts are corrected if the store was moved.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

from autotailor.tracking.anchors import anchor

SETTINGS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""Switch off telemetry, and the seven helper processes that MLflow starts for jobs, which autotailor does not use."""


def main() -> None:
    """Corrects the store's addresses, and replaces this process by MLflow's server."""
    database = Path(sys.argv[1])
    if not database.is_file():
        sys.exit(f"autotailor: there is no store {database.resolve()}; the first run of the workflow writes it")
    try:
        anchor(database)
    except sqlite3.Error as error:
        sys.exit(f"autotailor: {database.resolve()} is not an MLflow store ({error}); move it, runs write a new one")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    address = f"sqlite:///{database.resolve()}"
    command = [sys.executable, "-m", "mlflow", "ui", "--workers", "1", "--backend-store-uri", address, *sys.argv[2:]]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
