"""``python -m autotailor predict RUN --subnet NAME``: what a SubNet costs and how accurate it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from autotailor.commands import answer
from autotailor.commands.export import read_exits
from autotailor.commands.terminal import given_text, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autotailor.runs.prediction import Agreement, Prediction


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``predict`` to the commands."""
    parser = commands.add_parser(
        "predict",
        help="what a SubNet of a finished run costs, and how accurate it is",
        description="Predicts latency, energy, memory, parameters, MACs and accuracy of SubNets from the tables of a "
        "finished run, with units, standard errors where they are known, and what each number comes from. Beside "
        "them stand the measurements of exported SubNets. Nothing runs again.",
    )
    answer.add_arguments(parser)
    parser.add_argument(
        "--subnet",
        action="append",
        type=given_text,
        metavar="NAME|ID|FILE|JSON",
        help="an export (budget_02, largest), smallest, an id of pareto.csv or candidates.csv, a file such as "
        "subnet.json, or an assignment such as '{\"resolution\": 24}'; may be repeated; default: all exports",
    )
    parser.add_argument(
        "--expected",
        type=given_text,
        metavar="BUDGET",
        help="of a run with early exits: the best export, exits and thresholds whose mean cost of a picture is at most "
        "this, such as 0.8 (ms) or 60%%",
    )
    parser.add_argument("--worst", type=given_text, metavar="BUDGET", help="the same for the picture that costs most")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Predicts SubNets and prints the answer.

    Raises:
        AutoTailorError: the run is not finished or not of one piece, a SubNet is not one of its space, no exits keep
            the budgets, or budgets and SubNets are asked for together.
    """
    if options.expected or options.worst:
        if options.subnet:
            from autotailor.runs import RunError

            raise RunError("--expected and --worst choose among the exports: leave --subnet out, or ask twice")
        _run_exits(options)
        return
    with answer.only_the_answer(options):
        import autotailor

        opened = autotailor.open_run(options.folder)
        predictions = [opened.predict(which) for which in options.subnet or opened.subnets.exported]
        agreements, unknown = opened.agreements(), opened.unknown_metrics
    if options.json:
        answer.print_json(
            {
                "run": {"model": opened.folder.model, "device": opened.folder.device},
                "subnets": [prediction.to_dict() for prediction in predictions],
                "unknown": dict(unknown),
                "agreement": [agreement.to_dict() for agreement in agreements],
            }
        )
        return
    _show(predictions)
    for name, metric in opened.metrics.items():
        say(f"{name} from {metric.source}")
    if opened.score.mean_name:
        say(f"accuracy as measured, from summary.csv, is {opened.score.name}; {opened.score.mean} is another number")
    for name, reason in unknown.items():
        say(f"{name} is not known: {reason}")
    for agreement in agreements:
        say(_said(agreement))


def _run_exits(options: argparse.Namespace) -> None:
    """Chooses export, exits and thresholds, and prints the answer."""
    with answer.only_the_answer(options):
        import autotailor

        opened = autotailor.open_run(options.folder)
        found = opened.choose_exits(*read_exits(options))
    if options.json:
        where = {"model": opened.folder.model, "device": opened.folder.device}
        answer.print_json({"run": where, "exits": found.to_dict()})
        return
    answer.show_exits(found)


def _show(predictions: Sequence[Prediction]) -> None:
    """Prints one table for each SubNet."""
    console = answer.console()
    for prediction in predictions:
        named = ", ".join([*prediction.names, prediction.weights] if prediction.weights else prediction.names)
        title = f"SubNet {prediction.subnet.id}" + (f" ({named})" if named else "")
        console.print(answer.estimates(title, prediction.predicted, prediction.measured))
        console.print()


def _said(agreement: Agreement) -> str:
    """One line about measured SubNets."""
    scale, unit = (100.0, " %") if agreement.unit == "share" else (1.0, " points")
    mean, spread = scale * agreement.mean_error, scale * agreement.root_mean_square_error
    tau = "" if agreement.kendall_tau is None else f", Kendall's tau {agreement.kendall_tau:.2f}"
    if agreement.kendall_tau_error is not None:
        tau += f" ± {agreement.kendall_tau_error:.2f}"
    return (
        f"{agreement.metric} of {agreement.subnets} SubNets, predicted against measured: {mean:+.1f}{unit} on average, "
        f"{spread:.1f}{unit} root mean square{tau} ({agreement.source})"
    )
