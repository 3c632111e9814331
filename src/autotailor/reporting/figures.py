"""Figures of the front and of the two predictors."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from autotailor.reporting.comparison import ORIGINAL
from autotailor.reporting.derived_columns import cost_column, reference, scaled_means
from autotailor.reporting.inputs import Tables
from autotailor.reporting.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LIGHT,
    ORANGE,
    canvas,
    diagonal,
    house_style,
    padded,
)


def absent_figure() -> Figure:
    """The placeholder of a figure without numbers."""
    with house_style():
        figure = canvas(9.2, 1.2)
        figure.text(0.5, 0.5, "not measured", ha="center", va="center", color=GREY)
        return figure


def front_figure(tables: Tables) -> Figure:
    """Accuracy over the cost: the predicted front, the exported SubNets, the original, and scaled networks."""
    cost = tables.cost
    with house_style():
        figure = canvas(9.2, 5.0)
        axes = figure.add_subplot()
        pareto = tables.needed("pareto").sort_values(cost.column)
        axes.plot(
            pareto[cost.column],
            pareto["accuracy_predicted"],
            "-o",
            color=LIGHT,
            markersize=3,
            linewidth=1.2,
            label="front, predicted",
            zorder=1,
        )
        _subnets(tables, axes)
        _scaled(tables, axes)
        half = tables.number("summary", reference(tables), cost_column(tables)) / 2
        if np.isfinite(half):
            axes.axvline(half, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
            axes.annotate(
                f"half the {cost.title}",
                (half, 0.01),
                xycoords=("data", "axes fraction"),
                xytext=(4, 2),
                textcoords="offset points",
                color=GREY,
                fontsize=8,
            )
        axes.set(xlabel=f"{cost.title} ({cost.unit})", ylabel=f"{tables.score.name} (%)")
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        axes.legend(loc="lower right")
        return figure


def _subnets(tables: Tables, axes: Axes) -> None:
    """Exported SubNets: a hollow point for the prediction, a filled one for the measurement, joined by a line."""
    summary, predicted, reached = tables.needed("summary"), tables.cost.column, cost_column(tables)
    subnets = summary[summary.index != ORIGINAL]
    for _, row in subnets.iterrows():
        axes.plot(
            [row[predicted], row[reached]],
            [row["accuracy_predicted"], row["accuracy_measured"]],
            color=BLUE,
            linewidth=0.8,
            alpha=0.6,
            zorder=2,
        )
    axes.plot(
        subnets[predicted],
        subnets["accuracy_predicted"],
        "o",
        color=BLUE,
        markerfacecolor="white",
        markersize=7,
        linestyle="none",
        label="SubNets, predicted",
        zorder=3,
    )
    _points(axes, subnets, reached, "o", BLUE, "SubNets, measured", 8)
    _inherited(axes, subnets[subnets["weights"] == "polished"], reached)
    for name, row in subnets.iterrows():
        if np.isfinite(row["accuracy_measured"]):
            axes.annotate(
                str(name),
                (row[reached], row["accuracy_measured"]),
                xytext=(9, -11),
                textcoords="offset points",
                fontsize=9,
                color=INK,
                path_effects=[withStroke(linewidth=3, foreground="white")],
                zorder=5,
            )
    if ORIGINAL in summary.index:
        _points(axes, summary.loc[[ORIGINAL]], reached, "*", ORANGE, "original network", 15)


def _inherited(axes: Axes, polished: pd.DataFrame, reached: str) -> None:
    """What polished SubNets had with inherited weights: a dash below the measured point, joined to it."""
    if polished.empty:
        return
    cost, before = polished[reached], polished["accuracy_inherited"]
    axes.vlines(cost, before, polished["accuracy_measured"], color=BLUE, linewidth=1.2, linestyle=":", zorder=2)
    axes.plot(cost, before, "_", color=BLUE, markersize=11, markeredgewidth=1.8, label="the same, inherited weights")


def _points(axes: Axes, rows: pd.DataFrame, reached: str, marker: str, color: str, label: str, size: float) -> None:
    """Measured accuracies over a column of costs, with one standard error both ways."""
    errors = rows.get("latency_ms_standard_error")
    axes.errorbar(
        rows[reached],
        rows["accuracy_measured"],
        xerr=None if errors is None else errors.fillna(0),
        yerr=rows["accuracy_standard_error"].fillna(0),
        fmt=marker,
        color=color,
        markersize=size,
        markeredgecolor="white",
        ecolor=color,
        elinewidth=1.2,
        capsize=2,
        label=label,
        zorder=4,
    )


def _scaled(tables: Tables, axes: Axes) -> None:
    """Uniformly scaled networks: a point for each seed, and a line through the means."""
    compare = tables.table("compare")
    if compare is None:
        return
    cost = tables.cost.reached
    means = scaled_means(compare, cost)
    axes.plot(means[cost], means["accuracy_measured"], "--", color=GREEN, linewidth=1, zorder=2)
    errors = compare["accuracy_standard_error"].fillna(0) if "accuracy_standard_error" in compare else None
    axes.errorbar(
        compare[cost],
        compare["accuracy_measured"],
        yerr=errors,
        fmt="s",
        color=GREEN,
        markersize=6,
        markeredgecolor="white",
        elinewidth=1,
        capsize=2,
        label="scaled uniformly, trained alone",
        zorder=3,
    )


def latency_figure(tables: Tables) -> Figure:
    """Predicted against measured latency, and the relative errors beside the noise floor."""
    validation = tables.needed("validation")
    with house_style():
        figure = canvas(9.2, 4.4)
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        measured, predicted = validation["measured_ms"], validation["predicted_ms"]
        low, high = padded(min(measured.min(), predicted.min()), max(measured.max(), predicted.max()))
        line = np.array([low, high])
        left.fill_between(line, line * 0.9, line * 1.1, color=BLUE, alpha=0.07, linewidth=0, label="within 10 %")
        left.fill_between(line, line * 0.95, line * 1.05, color=BLUE, alpha=0.12, linewidth=0, label="within 5 %")
        diagonal(left, low, high, "predicted = measured")
        left.plot(measured, predicted, "o", color=BLUE, markersize=6, markeredgecolor="white", linestyle="none")
        left.set(
            xlabel="measured (ms)",
            ylabel="predicted (ms)",
            xlim=(low, high),
            ylim=(low, high),
            aspect="equal",
        )
        for axis in (left.xaxis, left.yaxis):
            axis.set_major_locator(MaxNLocator(6))
        left.set_title("Latency of validation SubNets")
        left.legend(loc="upper left")
        _errors(right, validation)
        return figure


def _errors(axes: Axes, validation: pd.DataFrame) -> None:
    """Relative errors, in percent, over measured latency."""
    ordered = validation.sort_values("measured_ms")
    x = ordered["measured_ms"].to_numpy(dtype=np.float64)
    error = 100 * ordered["relative_error"].to_numpy(dtype=np.float64)
    floor = 100 * ordered["noise_floor"].to_numpy(dtype=np.float64)
    if np.isfinite(floor).all():
        axes.vlines(x, -floor, floor, color=ORANGE, alpha=0.35, linewidth=7, label="noise floor")
    for bound in (5, 10):
        for sign in (-1, 1):
            axes.axhline(sign * bound, color=LIGHT, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.vlines(x, 0, error, color=BLUE, linewidth=1, alpha=0.5)
    axes.plot(x, error, "o", color=BLUE, markersize=6, markeredgecolor="white", linestyle="none")
    reach = max(12.0, 1.15 * float(np.nanmax(np.abs(error))))
    axes.set(xlabel="measured (ms)", ylabel="relative error (%)", ylim=(-reach, reach))
    axes.set_title("Predicted minus measured, over measured")
    if np.isfinite(floor).all():
        axes.legend(loc="lower right")


def accuracy_figure(tables: Tables) -> Figure:
    """Predicted against measured accuracy."""
    validation = tables.needed("accuracy_validation")
    with house_style():
        figure = canvas(5.4, 4.8)
        axes = figure.add_subplot()
        measured, predicted = validation["measured"], validation["predicted"]
        error, known = validation["standard_error"].fillna(0), validation["predicted_standard_error"].fillna(0)
        least, most = (
            min((measured - error).min(), (predicted - known).min()),
            max((measured + error).max(), (predicted + known).max()),
        )
        low, high = padded(least, most)
        diagonal(axes, low, high, "predicted = measured")
        axes.errorbar(
            predicted,
            measured,
            xerr=known,
            yerr=error,
            fmt="o",
            color=BLUE,
            markersize=6,
            markeredgecolor="white",
            elinewidth=1,
            capsize=2,
            label="SubNet, with one standard error",
        )
        axes.set(xlabel="predicted (%)", ylabel="measured (%)", xlim=(low, high), ylim=(low, high), aspect="equal")
        axes.set_title(f"{tables.score.title} of validation SubNets")
        axes.legend(loc="upper left")
        return figure
