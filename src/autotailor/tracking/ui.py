"""Serves MLflow's pages for a store: ``python -m autotailor.tracking.ui mlflow.db [arguments of mlflow ui]``.

Telemetry of MLflow is switched off, and the addresses of artifacts are corrected if the store was moved. In MLflow
3.17, a switch in the browser says whether all experiments open as model training or as agents, and agents are its first
setting; the tag of an experiment is not asked. ``pages`` sets the switch to model training, until a user moves it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from autotailor.tracking.anchors import anchor

if TYPE_CHECKING:
    from fastapi import FastAPI
    from flask import Response

SETTINGS = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""Switch off telemetry, and the seven helper processes that MLflow starts for jobs, which autotailor does not use."""
APP = "autotailor"
"""Name of ``pages`` among MLflow's apps (``pyproject.toml``, entry points)."""
SWITCH = "mlflow.workflowType_v1"
"""Where a browser keeps the switch: the key of MLflow's pages, with the version of its values."""
SCRIPT = f"""<script>try {{
  localStorage.getItem("{SWITCH}") || localStorage.setItem("{SWITCH}", '"machine_learning"')
}} catch (error) {{ console.warn("no local storage", error) }}</script>"""


def pages() -> FastAPI:
    """MLflow's server whose pages open as model training: ``mlflow server --app-name autotailor``."""
    from flask import request
    from mlflow.server import app
    from mlflow.server.fastapi_app import app as server

    @app.after_request
    def open_as_model_training(response: Response) -> Response:
        if request.endpoint == "serve" and response.status_code == 200:
            response.direct_passthrough = False
            response.set_data(response.get_data().replace(b"<head>", b"<head>" + SCRIPT.encode(), 1))
            for header in ("ETag", "Last-Modified"):  # of the file, which a browser may have kept
                response.headers.pop(header, None)
            response.headers["Cache-Control"] = "no-cache"
        return response

    return server  # type: ignore[no-any-return]


def main() -> None:
    """Corrects the store's addresses, and replaces this process by MLflow's server."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m autotailor.tracking.ui mlflow.db [arguments of mlflow ui]")
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
    command = [sys.executable, "-m", "mlflow", "ui", "--app-name", APP, "--workers", "1"]
    os.execv(sys.executable, [*command, "--backend-store-uri", address, *sys.argv[2:]])


if __name__ == "__main__":
    main()
