"""Charts in a page and in files: Altair says what they show, vl-convert draws them, and Vega makes them live.

A page holds each chart twice: drawn, for readers without JavaScript, and as a specification of Vega, which the page's
script draws anew as wide as the window is.
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from autotailor.reporting.page.palette import color, resolved

logger = logging.getLogger(__name__)

WIDTH = 860
"""Pixels of a chart that is drawn for a page without JavaScript, or for a file."""
LICENCE = "Vega (https://vega.github.io/vega), BSD 3-Clause License, University of Washington Interactive Data Lab"
BUNDLE = 'import {{ View, parse }} from "/npm/vega@{version}/+esm"; window.vega = {{ View, parse }};'
"""What of vl-convert's JavaScript is packed: Vega alone, because specifications of Vega-Lite are compiled here."""


@dataclass(frozen=True, eq=False)
class Part:
    """One chart of a figure.

    Attributes:
        chart: without a width.
        title: one line above the chart.
        width: share of a figure's width that the chart takes where there is room.
    """

    chart: alt.Chart | alt.LayerChart | alt.FacetChart
    title: str = ""
    width: float = 1.0


def configured(specification: dict[str, Any], room: str) -> dict[str, Any]:
    """A specification of Vega-Lite in the style of autotailor's pages.

    Args:
        specification: what Altair says of a chart; it stays as it is.
        room: pixels across for axes and legend together, an expression of Vega. Vega takes the axes from ``width``
            after it has arranged the legend: columns by ``width`` gave legends a row for which the chart had no height.
    """
    ink, soft, line = color("ink"), color("soft"), color("line")
    style = {
        "aria": False,
        "background": None,
        "font": "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
        "view": {"stroke": None},
        "axis": {
            **{"labelColor": soft, "titleColor": soft, "gridColor": line, "domainColor": line, "tickColor": line},
            **{"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8},
            **{"labelOverlap": "greedy", "labelSeparation": 8, "labelLimit": 210},
        },
        "axisXQuantitative": {"labelFlush": False, "tickCount": {"expr": "ceil(width / 80)"}},
        "legend": {
            **{
                "labelColor": ink,
                "labelFontSize": 12,
                "title": None,
                "orient": "bottom",
                "symbolStrokeWidth": 1.5,
                "symbolOpacity": 1,
            },
            **{
                "columns": {"expr": f"{room} < 350 ? 1 : {room} < 560 ? 2 : {room} < 980 ? 3 : 6"},
                "labelLimit": 190,
                "columnPadding": 14,
                "offset": 8,
            },
        },
        "title": {"color": ink, "fontSize": 13, "anchor": "start", "offset": 10},
        "text": {"color": ink},
    }
    return {**specification, "config": style, "autosize": {"type": "fit-x", "contains": "padding"}}


def drawn(specification: dict[str, Any]) -> str:
    """A specification of Vega-Lite as SVG, whose colours are variables of CSS."""
    svg: str = vl_convert.vegalite_to_svg(specification)
    return re.sub(r'(<svg[^>]*>)<rect [^>]*fill="white"/?>(</rect>)?', r"\1", svg)


def embedded(name: str, parts: Sequence[Part], description: str) -> Markup:
    """A figure of a page: its parts side by side where there is room for them.

    Args:
        name: of the figure; the parts are ``chart-NAME-0`` and so on.
        parts: the charts.
        description: of the figure, for people who do not see it.
    """
    cells = [_cell(f"chart-{name}-{number}", part, description) for number, part in enumerate(parts)]
    return Markup('<div class="split">{}</div>').format(Markup("").join(cells)) if len(cells) > 1 else cells[0]


def _cell(identity: str, part: Part, description: str) -> Markup:
    label = f"{description}: {part.title}" if part.title else description
    specification = part.chart.to_dict(validate=False)
    static = {**configured(specification, str(WIDTH * part.width)), "width": WIDTH * part.width}
    live = {**configured(specification, "containerSize()[0]"), "width": "container"}
    return Markup(
        '<div><p class="chart-title" aria-hidden="true">{title}</p>'
        '<div class="chart" id="{identity}" role="img" aria-label="{label}">{svg}</div>'
        '<script type="application/json" data-chart="{identity}">{specification}</script></div>'
    ).format(
        title=part.title,
        identity=identity,
        label=label,
        svg=Markup(drawn(static).replace("<svg ", '<svg aria-hidden="true" ', 1)),
        specification=json_text(vl_convert.vegalite_to_vega(live)),
    )


def absent() -> Part:
    """The placeholder of a figure without numbers."""
    text = alt.Chart(alt.InlineData(values=[{}])).mark_text(fontSize=14, color=color("soft"), text="not measured")
    return Part(text.properties(height=60))


def standalone(parts: Sequence[Part]) -> str:
    """A figure as an SVG file of its own, with light colours."""
    charts = [part.chart.properties(width=WIDTH * part.width, title=part.title) for part in parts]
    chart = alt.hconcat(*charts) if len(charts) > 1 else charts[0]
    specification = configured(chart.to_dict(validate=False), str(WIDTH))
    specification["autosize"] = "pad"
    specification["background"] = color("card")
    return resolved(drawn(specification))


def json_text(content: Any) -> Markup:
    """JSON for an element ``script``, which no text of the content can close."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c"))


@cache
def library() -> Markup:
    """Vega, once for all charts of a page; "" with a vl-convert that packs it otherwise, and charts stand still."""
    try:
        packed = vl_convert.javascript_bundle(BUNDLE.format(version=vl_convert.get_vega_version()))
    except ValueError as error:
        logger.warning("the charts of the page are not interactive: vl-convert cannot pack Vega (%s)", error)
        return Markup()
    return Markup(f"/* {LICENCE} */\n{packed}".replace("</script", "<\\/script"))
