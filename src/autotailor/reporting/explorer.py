"""What the page's script knows of each SubNet: what it costs, how accurate it is, what it is, and how to export it."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any

import pandas as pd

from autotailor.reporting.comparison import ORIGINAL
from autotailor.reporting.inputs import Tables

OUTPUT = "more"
"""Folder in which the commands write what they export."""
PREDICTED = ("", "accuracy_predicted", "accuracy_predicted_standard_error")
EVALUATED = ("", "accuracy_posterior", "posterior_standard_error")
MEASURED = ("latency_ms_standard_error", "accuracy_measured", "accuracy_standard_error")
"""Columns behind that of the cost: its error, the accuracy, and the accuracy's error."""


def command(tables: Tables, subnet: str) -> str:
    """The command that exports a SubNet of the run, in the folder in which the run was started."""
    run = tables.inputs.summary.parent.as_posix()
    words = ["autotailor", "export", run, "--subnet", subnet, "--output", f"{OUTPUT}/{subnet}"]
    return shlex.join(words)


def explorer(tables: Tables) -> dict[str, Any]:
    """All that the page's script needs, as plain data.

    Returns:
        ``cost``, ``score`` and ``mean`` (of what is predicted): how numbers are called. ``variables``: names, in the
        order of ``choices``. ``picked``: the SubNet that is shown first. ``subnets``: the exported ones, the original
        network, those that were evaluated, and those of the predicted front, each with ``id``, ``predicted``,
        ``evaluated`` and ``measured`` (cost, its error, accuracy, its error; null where a number is not known),
        ``choices`` (null where they are not known) and ``command`` (null for the original network).
    """
    assignments = _assignments(tables)
    variables = list(dict.fromkeys(name for choices in assignments.values() for name in choices))
    subnets = [*_exported(tables), *_searched(tables)]
    for subnet in subnets:
        choices = assignments.get(subnet.pop("subnet"))
        subnet["choices"] = None if choices is None else [choices.get(name) for name in variables]
    return {
        "cost": {"title": tables.cost.title, "unit": tables.cost.unit, "measured": tables.compared.is_measured},
        "score": tables.score.name,
        "mean": tables.score.mean,
        "variables": variables,
        "picked": tables.compared.featured,
        "subnets": subnets,
    }


def _exported(tables: Tables) -> list[dict[str, Any]]:
    """The rows of ``summary.csv``."""
    compared, column = tables.compared, tables.compared.cost_column
    rows = []
    for name in tables.needed("summary").index:
        number = compared.summary.loc[name]
        missed = str(name) in compared.missed
        rows.append(
            {
                "id": str(name),
                "subnet": str(number["subnet"]),
                "kind": "original" if name == ORIGINAL else "export",
                "weights": _text(number.get("weights")),
                "predicted": _numbers(number, tables.cost.expected, PREDICTED),
                "evaluated": None,
                "measured": _numbers(number, column, MEASURED),
                "budget": _number(number.get(tables.cost.budget)),
                "met": not missed if str(name) in compared.budgets else None,
                "command": None if name == ORIGINAL else command(tables, str(name)),
            }
        )
    return rows


def _searched(tables: Tables) -> list[dict[str, Any]]:
    """The SubNets of ``pareto.csv`` that are drawn, and those of ``candidates.csv``, which were evaluated."""
    front, evaluated, column = tables.drawn_front(), tables.evaluated(), tables.cost.expected
    return [
        {
            "id": str(id_),
            "subnet": str(id_),
            "kind": "front" if id_ in front.index else "evaluated",
            "weights": "",
            "predicted": _numbers((front if id_ in front.index else evaluated).loc[id_], column, PREDICTED),
            "evaluated": _numbers(evaluated.loc[id_], column, EVALUATED) if id_ in evaluated.index else None,
            "measured": None,
            "budget": None,
            "met": None,
            "command": command(tables, str(id_)),
        }
        for id_ in dict.fromkeys([*front.index, *evaluated.index])
    ]


def _assignments(tables: Tables) -> dict[str, Mapping[str, Any]]:
    """Id of a SubNet to its choices, from the exports, from the front and from what was evaluated."""
    assignments: dict[str, Mapping[str, Any]] = {}
    for searched in (tables.drawn_front(), tables.evaluated()):
        for id_, text in searched.get("assignment", pd.Series(dtype=str)).dropna().items():
            assignments[str(id_)] = json.loads(text)
    chosen = (tables.document("chosen") or {}).get("subnets", {})
    ids = tables.needed("summary")["subnet"]
    return assignments | {str(ids[name]): choices for name, choices in chosen.items() if name in ids.index}


def _numbers(row: pd.Series[Any], cost: str, columns: tuple[str, ...]) -> list[float | None]:
    return [_number(row.get(column)) for column in (cost, *columns)]


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(float(value)) else float(f"{float(value):.6g}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
