"""Corrects the addresses of artifacts in a store whose folder was moved or copied.

MLflow writes the absolute address of each experiment's artifacts into its tables, and makes relative addresses
absolute. Without a correction, a folder with ``mlflow.db`` and ``mlruns`` that was moved would show runs without
artifacts, and the next recorder would write artifacts into the old folder.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

ARTIFACTS = "mlruns"
PLACES = (
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "storage_location"),
)
"""Tables and columns with addresses of artifacts below their experiment's."""


def artifact_root(database: Path) -> Path:
    """The folder of all artifacts, beside the store."""
    return database.resolve().parent / ARTIFACTS


def anchor(database: Path) -> int:
    """Makes the store's experiments and runs look for their artifacts in ``mlruns`` beside the store.

    Experiments whose artifacts do not lie in a folder ``mlruns/NAME`` were not made by the recorder, and stay
    unchanged. The correction is one transaction, so that an interruption leaves the store as it was.

    Args:
        database: the SQLite file; a missing file is left missing.

    Returns:
        The number of experiments that were corrected.

    Raises:
        sqlite3.Error: the file is not a SQLite store of MLflow.
    """
    if not database.exists():
        return 0
    root, moved = artifact_root(database).as_uri(), 0
    with closing(sqlite3.connect(database, timeout=20)) as connection, connection:
        rows = connection.execute("SELECT experiment_id, name, artifact_location FROM experiments").fetchall()
        for experiment, name, old in rows:
            new = f"{root}/{quote(name)}"
            if old == new or not str(old).startswith("file:") or not old.endswith(f"/{ARTIFACTS}/{quote(name)}"):
                continue
            moved += 1
            connection.execute(
                "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?", (new, experiment)
            )
            for table, column in PLACES:
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?",
                    (new, len(old) + 1, len(old) + 1, f"{old}/"),
                )
    return moved
