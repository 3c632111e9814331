"""Prints the front, the seconds of each stage, and the path of the report, at the end of `make run`.

python workflow/finish.py MODEL DEVICE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from autotailor import data, search
from autotailor.reporting import print_front


def main() -> None:
    """Reads the artifacts of one model and device."""
    directory = Path("results", *sys.argv[1:3])
    timings = pd.read_csv(directory / "timings.csv")
    configuration = json.loads((directory / "configuration.json").read_text(encoding="utf-8"))
    print_front(
        pd.read_csv(directory / "summary.csv"),
        timings,
        (directory / "report.html").resolve(),
        score=data.score(configuration["data"]),
        cost=search.cost_of_device(configuration["device"]),
    )


if __name__ == "__main__":
    main()
