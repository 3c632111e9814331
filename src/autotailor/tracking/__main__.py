"""Runs the recorder: ``python -m autotailor.tracking OWNER_PID ORDER_JSON``; ``recorder.start`` calls this command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from autotailor.tracking.journal import RunKey
from autotailor.tracking.recorder import follow


def main() -> None:
    """Reads the order and follows the journals."""
    order = json.loads(sys.argv[2])
    follow(int(sys.argv[1]), Path(order["database"]), Path(order["folder"]), RunKey(**order["run"]))


if __name__ == "__main__":
    main()
