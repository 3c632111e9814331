"""``python -m autotailor export RUN --budget 48% --output FOLDER``: one more budget, or SubNet, from a finished run."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotailor.commands import answer
from autotailor.commands.terminal import given_path, given_text, own_file, say

if TYPE_CHECKING:
    from autotailor.runs.export import ExportAnswer
    from autotailor.search.metrics import Budget


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``export`` to the commands."""
    parser = commands.add_parser(
        "export",
        help="one more budget or SubNet from a finished run",
        description="Chooses the most accurate SubNet within a budget, or takes the SubNet that is named, polishes it, "
        "writes and verifies its files, and measures it on the device beside the original network, as a run does, but "
        "in seconds to minutes: no rule runs again. After an interruption, the same command goes on where it was.",
    )
    answer.add_arguments(parser)
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--subnet",
        type=given_text,
        metavar="NAME|ID|FILE|JSON",
        help="one SubNet: an export (budget_02), which keeps its weights, an id of pareto.csv or candidates.csv, a "
        "file such as subnet.json, or an assignment",
    )
    question.add_argument(
        "--budget",
        help="0.09 (ms), a throughput such as 30/s, or a share of the largest SubNet such as 48%%; of a run without a "
        "device 12.5 (millions), a count such as 300M, or a share",
    )
    question.add_argument(
        "--expected",
        type=given_text,
        metavar="BUDGET",
        help="of a run with early exits: the best export, exits and thresholds whose mean cost of a picture is at most "
        "this, such as 0.8 (ms) or 60%%, as they are: nothing is polished or measured",
    )
    parser.add_argument(
        "--worst", type=given_text, metavar="BUDGET", help="beside --expected, the same for the picture that costs most"
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="METRIC=VALUE",
        help="a further limit such as peak_memory=4 (MiB), energy=50%%, parameters=2M or macs=300M; may be repeated",
    )
    parser.add_argument("--output", required=True, type=given_path, metavar="FOLDER", help="a new folder for the files")
    parser.add_argument(
        "--no-polish", dest="polish", action="store_false", help="keep the weights that all SubNets share: seconds"
    )
    parser.add_argument("--no-measure", dest="measure", action="store_false", help="do without the device")
    for name, what in (("address", "address"), ("serial", "serial number"), ("key", "file of the private key")):
        told, kind = f"{what} of a remote device; default: conf/device", own_file if name == "key" else str
        parser.add_argument(f"--{name}", type=kind, metavar=name.upper(), help=told)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Exports a SubNet and prints what was exported.

    Raises:
        AutoTailorError: see ``Run.export``.
    """
    if options.expected is not None:
        _run_exits(options)
        return
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("autotailor").setLevel(logging.INFO)
    with answer.only_the_answer(options):
        import autotailor

        opened = autotailor.open_run(options.folder)
        access = {name: getattr(options, name) for name in ("address", "serial", "key")}
        more = {"polish": options.polish, "measure": options.measure, "access": access}
        check_alone(options.worst, "--worst stands beside --expected: leave it out, or ask for both")
        if options.subnet is None:
            budget = read_budgets(opened.cost.name, options.budget, options.limit)
            exported = opened.export(budget, options.output, **more)
        else:
            check_alone(options.limit, "--limit chooses among SubNets: leave it out, or ask with --budget")
            exported = opened.export_subnet(options.subnet, options.output, **more)
    if options.json:
        answer.print_json(exported.to_dict())
    else:
        _show(exported, opened.cost.name)


def read_budgets(cost: str, budget: str, limits: Sequence[str]) -> Budget:
    """One budget, or the budget of the cost and further limits ``METRIC=VALUE`` by name.

    Raises:
        RunError: a limit is written otherwise, or given twice.
    """
    if not limits:
        return read_budget(budget)
    from autotailor.runs import RunError

    named: dict[str, float | str] = {cost: read_budget(budget)}
    for text in limits:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name in named:
            raise RunError(f"--limit {text!r}: expected METRIC=VALUE such as 'peak_memory=4', each metric once")
        named[name] = read_budget(value)
    return named


def check_alone(beside: Sequence[str] | None, remedy: str) -> None:
    """Refuses what has no meaning beside the question.

    Raises:
        RunError: it was given.
    """
    from autotailor.runs import RunError

    if beside:
        raise RunError(remedy)


def _run_exits(options: argparse.Namespace) -> None:
    """Copies the files of an export with exits and thresholds for budgets, and prints what they are."""
    with answer.only_the_answer(options):
        import autotailor

        check_alone(options.limit, "--limit chooses among SubNets: leave it out, or ask with --budget")
        remote = [f"--{name}" for name in ("address", "serial", "key") if getattr(options, name)]
        check_alone(remote, f"--expected measures nothing: leave {' and '.join(remote)} out, or ask with --budget")
        found = autotailor.open_run(options.folder).export_exits(options.output, *read_exits(options))
    if options.json:
        answer.print_json({"folder": str(options.output), "exits": found.to_dict()})
        return
    answer.show_exits(found)
    say(f"{options.output}: the files{', for autotailor.exits.chain.Chain' if found.thresholds else ''}")


def read_exits(options: argparse.Namespace) -> tuple[float | str | None, float | str | None]:
    """The budgets of the expected and the worst cost; None where there is none."""
    expected, worst = (text and read_budget(text) for text in (options.expected, options.worst))
    return expected, worst


def read_budget(text: str) -> float | str:
    """A number as such; any other text as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def _show(exported: ExportAnswer, cost: str) -> None:
    """Prints what was exported, and whether it meets its budget of the cost."""
    title = f"SubNet {exported.subnet.id} ({exported.weights})"
    if exported.budget is not None:
        further = "".join(f", {name} {answer.number(value)}" for name, value in exported.limits.items())
        title += f" for a budget of {answer.number(exported.budget)} {exported.unit}{further}"
    answer.console().print(answer.estimates(title, exported.predicted, exported.measured))
    validation = ", ".join(f"{answer.number(v)} % {kind}" for kind, v in exported.validation.items() if v is not None)
    say(f"On the validation set: {validation}.")
    if exported.budget is not None and exported.meets_budget is False:
        spent = (exported.measured.get(cost) or exported.predicted[cost]).value
        when = " when measured" if cost in exported.measured else ""
        say(
            f"The budget is missed by {spent / exported.budget - 1:.1%}{when}; ask for "
            f"{answer.number(exported.budget**2 / spent)} {exported.unit} to meet it."
        )
    say(f"{exported.folder}: {exported.seconds:.0f} s")
