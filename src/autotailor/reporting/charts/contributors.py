"""Where the time of a SubNet goes, beside that of the original network: by kind of operator, and by stage.

The page's script sets the parameter ``subnet``, the name of the SubNet that is compared.
"""

import altair as alt
import pandas as pd

from autotailor.reporting import breakdown
from autotailor.reporting.charts.marks import Drawing, data
from autotailor.reporting.inputs import Tables
from autotailor.reporting.page.chart import Part
from autotailor.reporting.page.palette import color

LINE = 44
"""Pixels of a kind or a stage."""
WHOLE, SUBNET = "your network", "SubNet"


def contributors(tables: Tables) -> tuple[Part, ...]:
    """The charts by kind and, where the run knows the stages, by stage."""
    table = tables.needed("contributors")
    columns = ("kind", "stage") if breakdown.has_stages(table) else ("kind",)
    titles = {"kind": "By kind of operator", "stage": "By stage"}
    width = 0.48 if len(columns) == 2 else 1.0
    return tuple(Part(_bars(tables, table, column), titles[column], width) for column in columns)


def compared(tables: Tables) -> str:
    """The SubNet that is compared at first: the featured one, where its operators are known."""
    table = tables.needed("contributors")
    names = list(dict.fromkeys(table["name"]))
    return tables.compared.featured if tables.compared.featured in names else names[-1]


def _bars(tables: Tables, table: pd.DataFrame, column: str) -> Drawing:
    sums = breakdown.sums(table, column)
    base = breakdown.base(table)
    rows = [
        {"name": name, "group": group, "ms": ms, "which": which, "hint": f"{group}, {who}\n{ms:.4g} ms"}
        for name, row in sums.iterrows()
        for group, ms in row.items()
        for which, who in ([(WHOLE, WHOLE)] if name == base else []) + [(SUBNET, name)]
    ]
    groups = list(sums.columns)
    shown = f"datum.which === '{WHOLE}' || datum.name === subnet"
    chart = alt.Chart(data(rows)).transform_filter(shown)
    y = alt.Y("group:N", sort=groups, title=None, axis=alt.Axis(ticks=False, domain=False, grid=False))
    side = alt.YOffset("which:N", sort=[WHOLE, SUBNET])
    fill = alt.Color("which:N", scale=alt.Scale(domain=[WHOLE, SUBNET], range=[color("grey"), color("blue")]))
    x = alt.X("ms:Q", title="latency in the LUT (ms)", scale=alt.Scale(domain=[0, float(sums.to_numpy().max()) * 1.12]))
    bars = chart.mark_bar().encode(y=y, yOffset=side, x=x, color=fill, tooltip=alt.Tooltip("hint:N"))
    texts = chart.mark_text(align="left", dx=4, fontSize=11, color=color("soft")).encode(
        y=y, yOffset=side, x=x, text=alt.Text("ms:Q", format=".3~g")
    )
    layers = alt.layer(bars, texts).add_params(alt.param(name="subnet", value=compared(tables)))
    return layers.properties(height=LINE * len(groups))
