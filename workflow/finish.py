"""Prints the front, the seconds of each stage, the path of the report, and the answer of the run in one sentence.

python workflow/finish.py MODEL DEVICE

Of several models or devices (``a,b``), every pair is printed.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pandas as pd

from autotailor import config, logs, search, task
from autotailor.artifacts import digest, read_json
from autotailor.commands.terminal import say, terminal
from autotailor.reporting import answer, print_front


def main() -> None:
    """Prints all pairs that are asked for."""
    logs.print_what_the_output_knows()
    for pair in itertools.product(*map(config.split_names, sys.argv[1:3])):
        show(Path("results", *pair))
    for page in compared(*map(config.split_names, sys.argv[1:3])):
        say(f"All networks on all devices: {page.resolve()}")


def compared(models: list[str], devices: list[str]) -> list[Path]:
    """The pages that compare exactly these models on these devices; none after a run of one pair."""
    asked = {"models": digest(models), "devices": digest(devices)}
    records = Path("results", "fleet").glob("*/provenance/fleet.json")
    return [path.parents[1] / "index.html" for path in records if read_json(path)["lineage"] == asked]


def show(directory: Path) -> None:
    """Reads the artifacts of one model and device."""
    timings = pd.read_csv(directory / "timings.csv")
    configuration = json.loads((directory / "configuration.json").read_text(encoding="utf-8"))
    summary, score = pd.read_csv(directory / "summary.csv"), task.score(configuration["data"])
    cost = search.cost_of_device(configuration["device"])
    print_front(summary, timings, (directory / "report.html").resolve(), score=score, cost=cost, console=terminal())
    found = answer(summary, configuration["device"]["name"], score, cost)
    for sentence in (found.sentence, *found.caveats):
        say(sentence.replace("`", ""))


if __name__ == "__main__":
    main()
