"""Where the time of a SubNet goes, beside that of the original network: sums over ``contributors.csv``.

The original network has the shape of the largest SubNet, so that the operators of the one are those of the other.
"""

from collections.abc import Hashable

import pandas as pd

from autotailor.reporting.comparison import LARGEST
from autotailor.reporting.inputs import Tables

OUTSIDE = "outside of stages"
"""What the stage of the stem, the head and all that belongs to no stage is called."""


def has_stages(table: pd.DataFrame) -> bool:
    """Whether ``contributors.csv`` says the stages of places; runs of before do not."""
    return "stage" in table.columns


def base(table: pd.DataFrame) -> str:
    """Name of the SubNet with the operators of the original network, else the first one's."""
    names = list(dict.fromkeys(table["name"]))
    return LARGEST if LARGEST in names else str(names[0])


def sums(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Latency of each SubNet by kind or by stage.

    Args:
        table: ``contributors.csv``.
        column: ``kind``, whose groups come by falling latency of the base, or ``stage``, in the network's order.

    Returns:
        One row for each SubNet, one column for each group, in ms; 0 where a SubNet has no such operator.
    """
    groups = table[column].fillna("").replace("", OUTSIDE) if column == "stage" else table[column]
    totals = table.assign(group=groups).pivot_table(
        index="name", columns="group", values="latency_ms", aggfunc="sum", fill_value=0.0
    )
    totals = totals.loc[list(dict.fromkeys(table["name"])), list(dict.fromkeys(groups))]
    if column == "stage":
        return totals
    of_base: dict[Hashable, float] = dict(zip(totals.columns, totals.loc[[base(table)]].to_numpy()[0], strict=True))
    return totals[sorted(totals.columns, key=lambda group: -of_base[group])]


def places(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The places of a SubNet and of the base, those that take most of the time of either first.

    Returns:
        Indexed by place: kind, stage ("" where it is not known), ``before`` (ms in the base) and ``after`` (ms in the
        SubNet); NaN where the network does not have the place.
    """
    before, after = (
        table[table["name"] == each].drop_duplicates("place").set_index("place") for each in (base(table), name)
    )
    order = [*before.index, *(place for place in after.index if place not in before.index)]
    rows = pd.DataFrame(index=pd.Index(order, name="place"))
    for column in ("kind", "stage"):
        if column in table.columns:
            rows[column] = after[column].reindex(order).fillna(before[column].reindex(order)).fillna("")
        else:
            rows[column] = ""
    rows["before"], rows["after"] = before["latency_ms"].reindex(order), after["latency_ms"].reindex(order)
    most = rows[["before", "after"]].max(axis=1)
    return rows.loc[most.sort_values(ascending=False, kind="stable").index]


def saved(tables: Tables, row: str) -> float:
    """Milliseconds that a place (``name|place``) takes less in a SubNet than in the base; NaN without the table."""
    table = tables.table("contributors")
    if table is None:
        return float("nan")
    name, place = row.split("|", 1)
    here = table[table["place"] == place]
    before, after = (here.loc[here["name"] == each, "latency_ms"].sum() for each in (base(table), name))
    return float(before - after)


def group_latency(tables: Tables, row: str, column: str) -> float:
    """Milliseconds of a kind or stage (``name|group``) in a SubNet; NaN without the table."""
    table = tables.table("contributors")
    if table is None:
        return float("nan")
    name, group = row.split("|", 1)
    groups = table[column].fillna("").replace("", OUTSIDE)
    return float(table.loc[(table["name"] == name) & (groups == group), "latency_ms"].sum())
