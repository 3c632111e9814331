"""Writes the page and its tables: ``results/fleet/NAME``."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from autotailor.artifacts import atomic, write_text
from autotailor.fleet.best import best_within, exports, united_front
from autotailor.fleet.page.chart import chart
from autotailor.fleet.runs import Fleet
from autotailor.fleet.single import single_subnets
from autotailor.ir.errors import printable_value
from autotailor.task.scores import Score

TABLES = ("best", "front", "exports", "single", "effort")

EFFORT = ("model", "device", "rule", "seconds")
OF_MODEL = "provenance"


def tables(fleet: Fleet) -> dict[str, pd.DataFrame]:
    """The tables of the page, by the name of their file."""
    return {
        "best": best_within(fleet),
        "front": united_front(fleet),
        "exports": exports(fleet),
        "single": single_subnets(fleet),
        "effort": efforts(fleet),
    }


def write_page(fleet: Fleet, path: Path) -> None:
    """Writes the page and, beside it, a CSV of each of its tables.

    Args:
        fleet: the finished runs.
        path: of the page.
    """
    results = tables(fleet)
    for name, table in results.items():
        with atomic(path.parent / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)
    write_text(path, render(fleet, results))


def render(fleet: Fleet, results: Mapping[str, pd.DataFrame]) -> str:
    """The page's HTML.

    Args:
        fleet: the finished runs.
        results: a result of ``tables``.
    """
    environment = Environment(
        loader=PackageLoader("autotailor.fleet.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=printable_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "share": share}
    score = fleet.of(fleet.models[0], fleet.devices[0]).score
    spent = minutes(results["effort"])
    return environment.get_template("index.html").render(
        fleet=fleet,
        score=score,
        best=_by_device(results["best"]),
        exports=_exports(results["exports"]),
        single=results["single"].to_dict("records"),
        spent=spent,
        charts=[chart(fleet, device, results["front"]) for device in fleet.devices],
        answers=answers(results["best"], score),
        cost_of_a_device=cost_of_a_device(spent),
        loss_of_a_single=loss_of_a_single(results["single"]),
    )


def number(value: object, digits: int = 3) -> str:
    """A number with so many significant digits; a dash where there is none."""
    if not isinstance(value, (int, float)) or value != value:
        return "–"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"


def share(value: object) -> str:
    """A share in percent with one decimal; a dash where there is none."""
    return f"{value:.1f}" if isinstance(value, float) and value == value else "–"


def _by_device(best: pd.DataFrame) -> dict[str, list[tuple[dict[str, object], list[dict[str, object]]]]]:
    """Each device to its budgets, each with its first row and the rows of all models."""
    return {
        str(device): [
            ({str(key): value for key, value in rows.iloc[0].items()}, _records(rows))
            for _, rows in of_device.groupby("budget", sort=False)
        ]
        for device, of_device in best.groupby("device", sort=False)
    }


def _exports(table: pd.DataFrame) -> dict[tuple[str, str], dict[str, dict[str, object]]]:
    """Each exported SubNet, as model and name, to its rows by device."""
    rows: dict[tuple[str, str], dict[str, dict[str, object]]] = {}
    for row in _records(table):
        rows.setdefault((str(row["model"]), str(row["name"])), {})[str(row["device"])] = row
    return rows


def _records(table: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def answers(best: pd.DataFrame, score: Score) -> list[str]:
    """Which network to take, a sentence for each device.

    Args:
        best: a result of ``best.best_within``.
        score: what the share of right answers is called.
    """
    sentences = []
    for device, rows in best[best["is_best"]].groupby("device", sort=False):
        models = list(dict.fromkeys(rows["model"]))
        count = best[best["device"] == device]["budget"].nunique()
        if len(models) == 1 and len(rows) == count:
            within = "the budget" if count == 1 else f"each of the {count} budgets"
            sentences.append(f"On {device}, {models[0]} is the {score.best} network within {within}.")
        else:
            parts = [
                f"{model} {_range(part, rows['unit'].iloc[0])}" for model, part in rows.groupby("model", sort=False)
            ]
            sentences.append(f"On {device}, the {score.best} network is {' and '.join(parts)}.")
    return sentences


def _range(rows: pd.DataFrame, unit: str) -> str:
    """For which budgets a network is the best one."""
    values = [f"{value:.3g}" for value in rows["budget"]]
    return f"within {', '.join(values)} {unit}"


def cost_of_a_device(spent: pd.DataFrame) -> str:
    """What one more device takes.

    Args:
        spent: a result of ``minutes``.
    """
    own = spent.drop(columns="", errors="ignore").sum()
    once = spent[""].sum() if "" in spent else 0.0
    return (
        f"The networks took {once:.1f} minutes once; one more device took {own.mean():.1f} minutes on average, from "
        f"{own.min():.1f} ({own.idxmin()}) to {own.max():.1f} ({own.idxmax()})."
    )


def loss_of_a_single(single: pd.DataFrame) -> str:
    """What a fleet with one SubNet for all devices loses.

    Args:
        single: a result of ``single.single_subnets``.
    """
    comparable = single.dropna(subset=["loss"])
    if comparable.empty:
        return "No single SubNet keeps the budgets of all devices."
    worst = comparable.iloc[int(comparable["loss"].to_numpy().argmax())]
    missing = single["budgets"].nunique() - comparable["budgets"].nunique()
    none = f" For {missing} rows of budgets no SubNet keeps all of them." if missing else ""
    return (
        f"One SubNet for all devices loses {comparable['loss'].mean():.1f} points on average, and at most "
        f"{worst['loss']:.1f} points, on {worst['device']}.{none}"
    )


def efforts(fleet: Fleet) -> pd.DataFrame:
    """The seconds of each rule, as the last run of the rule took them.

    Returns:
        A table with the columns ``EFFORT``. ``device`` is empty for the rules that work for all devices of a model.
    """
    rows = []
    for (model, device), run in fleet.runs.items():
        shared = {path.stem for path in (run.folder.path.parent / OF_MODEL).glob("*.json")}
        for rule, seconds in pd.read_csv(run.folder.path / "timings.csv").itertuples(index=False):
            rows.append((model, "" if rule in shared else device, rule, seconds))
    return pd.DataFrame(rows, columns=list(EFFORT)).drop_duplicates(["model", "device", "rule"], ignore_index=True)


def minutes(table: pd.DataFrame) -> pd.DataFrame:
    """Minutes of each model (rows) once, in the column ``""``, and on each device in addition.

    Args:
        table: a result of ``efforts``.
    """
    summed = table.pivot_table(index="model", columns="device", values="seconds", aggfunc="sum", sort=False)
    return summed / 60.0
