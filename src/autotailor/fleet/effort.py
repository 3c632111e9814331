"""How many minutes each rule took: what a network costs once, and what each device costs in addition."""

import pandas as pd

from autotailor.fleet.runs import Fleet

EFFORT = ("model", "device", "rule", "seconds")
OF_MODEL = "provenance"


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
