"""The recorder's process, and the command that publishes what a run could not.

``recorder.start`` calls ``python -m autotailor.tracking OWNER_PID ORDER_JSON``. With the argument ``publish`` instead,
the journals are written that wait in this directory's ``results``.
"""

import json
import os
import sys
from pathlib import Path

from autotailor.ir.errors import AutoTailorError
from autotailor.tracking.address import VARIABLE, address
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.recorder import follow, publish

DATABASE, FOLDER = Path("mlflow.db"), Path("results/.tracking")


def main() -> None:
    """Follows the journals of a run, or publishes those that wait."""
    if sys.argv[1:] == ["publish"]:
        _publish()
        return
    order = json.loads(sys.argv[2])
    follow(int(sys.argv[1]), Path(order["database"]), Path(order["folder"]))


def _publish() -> None:
    """Writes the journals that wait, and says what has become of them."""
    try:
        where = address(DATABASE)
    except AutoTailorError as error:
        sys.exit(f"autotailor: {error}")
    waiting = len(list((FOLDER / JOURNALS).glob("*.jsonl")))
    if not waiting:
        print("autotailor: no run waits to be published")
        return
    os.environ[VARIABLE] = where.uri
    if publish(DATABASE, FOLDER):
        print(f"autotailor: the {waiting} waiting runs are published to {where}")
    else:
        sys.exit(f"autotailor: runs wait still, because {where} does not take them (see above); try again later")


if __name__ == "__main__":
    main()
