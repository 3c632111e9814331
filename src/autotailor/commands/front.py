"""``python -m autotailor front RUN --x latency --limit 'peak_memory<=2'``: a front of two or three metrics."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from autotailor.commands import answer
from autotailor.commands.terminal import say, terminal

if TYPE_CHECKING:
    from autotailor.runs.fronts.answer import FrontAnswer, Gap


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``front`` to the commands."""
    parser = commands.add_parser(
        "front",
        help="the front of any two or three metrics of a finished run",
        description="Finds the SubNets that no other one beats in all of two or three metrics, as predicted by a "
        "finished run, under limits of any metrics. Nothing runs again.",
    )
    answer.add_arguments(parser)
    for name, default, said in (("x", None, "what the run's budgets limit"), ("y", "accuracy", "accuracy")):
        parser.add_argument(
            f"--{name}", default=default, metavar="METRIC", help=f"accuracy, latency, macs ... (default: {said})"
        )
    parser.add_argument("--z", metavar="METRIC", help="a third metric, such as peak_memory")
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="METRIC<=VALUE",
        help="a bound such as 'peak_memory<=2' or 'accuracy>=90', in the unit of the metric; may be repeated",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Finds the front and prints it.

    Raises:
        AutoTailorError: see ``Run.front``.
    """
    with answer.only_the_answer(options):
        import autotailor

        front = autotailor.open_run(options.folder).front(options.x, options.y, options.limit, z=options.z)
    if options.json:
        answer.print_json(front.to_dict())
    else:
        _show(front)


def _show(front: FrontAnswer) -> None:
    """Prints one row for each SubNet, and where the numbers come from."""
    axes = [name for name in (front.x, front.y, front.z) if name]
    names = [*axes, *(name for name in front.points[0] if name not in axes)]
    units = {name: f"{name} {front.points[0][name].unit}" for name in names}
    shown = answer.table(f"{len(front.subnets)} SubNets", "SubNet", *units.values(), numbers=tuple(units.values()))
    for subnet, point in zip(front.subnets, front.points, strict=True):
        numbers = (answer.number(point[name].value, point[name].standard_error) for name in names)
        shown.add_row(subnet.id, *numbers)
    terminal(least=120).print(shown)
    for name in names:
        say(f"{name} from {front.points[0][name].source}")
    how = "exact under these predictions" if front.is_exact else "perhaps not the best possible"
    say(f"found by {front.method}: {how}")
    if front.gap is not None:
        _show_gap(front.gap, {name: each.unit for name, each in front.points[0].items()})


def _show_gap(gap: Gap, units: Mapping[str, str]) -> None:
    """Prints what may be missing, and where."""
    unit = units[gap.metric]
    what = f"at any limits that a SubNet of the front keeps, none is better in {gap.metric}"
    if not gap.between:
        say(f"complete: {what}")
    elif gap.axis is None:
        say(f"{what} by more than {answer.number(gap.largest)} {unit}")
    else:
        levels = ", ".join(answer.number(level) for level in gap.levels)
        say(f"{what} by more than {answer.number(gap.between)} {unit};")
        say(f"by no more than {answer.number(gap.largest)} {unit} at {gap.axis} of {levels} {units[gap.axis]}")
