"""``autotailor status``: what a run is doing, or why it ended; from its files, whether or not it still runs."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from autotailor.commands import answer
from autotailor.commands.terminal import given_path, say
from autotailor.contents import altered, altered_sentence
from autotailor.progress.record import FAILED, STOPPED
from autotailor.progress.status import KILLED, RUNNING, STARTING, StageStatus, Status, read_status

MARKS = {"done": "✓", RUNNING: "▸", "waiting": "·", STOPPED: "‖", FAILED: "✗", KILLED: "✗"}


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``status`` to the commands."""
    parser = commands.add_parser(
        "status",
        help="what a run is doing, or why it ended",
        description="Says which stages of the last run in this folder are done, running or waiting, with the progress "
        "of those that run; or why the run ended, with the last lines of the failing stage's log. It reads files only: "
        "it works beside a run, from another terminal or another machine.",
    )
    parser.add_argument("model", nargs="?", help="only the stages of this model")
    parser.add_argument("device", nargs="?", help="only the stages of this device, and those of the model alone")
    parser.add_argument(
        "--folder", type=given_path, default=Path(), help="in which the run was started; default: this one"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Prints the status.

    Raises:
        ProgressError: no run has left a trace in the folder.
        ArtifactError: a record of the results cannot be read.
    """
    status = read_status(options.folder, options.model, options.device)
    warning = "" if status.state in (RUNNING, STARTING) else altered_sentence(_altered(options))
    if options.json:
        answer.print_json({**status.to_dict(), "altered": warning})
    else:
        say("\n".join([*lines(status), *([f"! {warning}"] if warning else [])]))


def _altered(options: argparse.Namespace) -> dict[Path, str]:
    """The results of the models and devices that somebody has changed since their rules wrote them."""
    results, model = options.folder / "results", glob.escape(options.model or "") or "*"
    device = glob.escape(options.device or "") or "*"
    return altered([*results.glob(model), *results.glob(f"{model}/{device}")])


def lines(status: Status) -> list[str]:
    """The status for people."""
    several = len({(stage.model, stage.device) for stage in status.stages if stage.device}) > 1
    names = [_name(stage, several) for stage in status.stages]
    width = max((len(name) for name in names), default=0)
    lines_ = [status.sentence]
    for name, stage in zip(names, status.stages, strict=True):
        spent = "" if stage.seconds is None else str(timedelta(seconds=round(stage.seconds)))
        lines_.append(f"{MARKS[stage.state]} {name:<{width}} {stage.state:<8} {spent:>8}  {stage.now}".rstrip())
        lines_ += [f"    ! {warning}" for warning in stage.warnings]
    for stage in status.failures:
        lines_ += _failure(stage)
    return [*lines_, *([status.remedy] if status.remedy else [])]


def _name(stage: StageStatus, several: bool) -> str:
    return " ".join([stage.rule, *(part for part in (stage.model, stage.device) if several and part)])


def _failure(stage: StageStatus) -> Sequence[str]:
    if not stage.last_lines:
        return [f"{stage.log} has no message."]
    return [f"{stage.log} ends with:", *(f"    {line}" for line in stage.last_lines)]
