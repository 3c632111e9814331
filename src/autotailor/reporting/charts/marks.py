"""What several charts need: rows as data, a symmetric band, and the axis of a quantity."""

import math
from collections.abc import Iterable
from typing import Any

import altair as alt

from autotailor.reporting.page.palette import color

Row = dict[str, Any]
Drawing = Any
"""A chart of Altair or layers of such charts, whose types do not compose."""


def data(rows: Iterable[Row]) -> alt.InlineData:
    """Rows as data of a chart; numbers that are not finite are left out, and large precision with them."""
    return alt.InlineData(values=[{key: _plain(value) for key, value in row.items()} for row in rows])


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


class Axis:
    """An axis of numbers, for any field of the data.

    Args:
        title: of the axis.
        scale: options of the scale.
    """

    def __init__(self, title: str, **scale: Any) -> None:
        self.title, self.scale = title, alt.Scale(**{"zero": False, **scale})

    def x(self, field: str = "x") -> alt.X:
        """The field along a horizontal axis."""
        return alt.X(f"{field}:Q", title=self.title, scale=self.scale)

    def y(self, field: str = "y") -> alt.Y:
        """The field along a vertical axis."""
        return alt.Y(f"{field}:Q", title=self.title, scale=self.scale)


def error_bars(rows: Iterable[Row], x: Axis, y: Axis, name: str) -> Drawing:
    """One standard error both ways, of rows with ``x_low``, ``x_high``, ``y_low`` and ``y_high``, in a colour."""
    chart = alt.Chart(data(rows)).mark_rule(strokeWidth=1.2, color=color(name), opacity=0.75)
    across = chart.transform_filter("isValid(datum.x_low)").encode(x=x.x("x_low"), x2="x_high", y=y.y())
    upright = chart.transform_filter("isValid(datum.y_low)").encode(x=x.x(), y=y.y("y_low"), y2="y_high")
    return alt.layer(across, upright)


def interval(value: float, error: float, name: str) -> dict[str, float]:
    """The ends of one standard error around a value, as ``NAME_low`` and ``NAME_high``."""
    return {f"{name}_low": value - error, f"{name}_high": value + error}
