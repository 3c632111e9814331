"""Rows of the table, which show how far each predictor is from the measured latencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.table import Table

from autotailor.statistics import kendall_tau

FloatArray = npt.NDArray[np.float64]
COLUMNS = (
    "network", "predictor", "within_5", "within_10", "median_error", "mean_error", "tau", "profiling_minutes",
    "operators", "space_operators", "subnets", "floor_5", "floor_95", "raw_drift", "unclaimed_layers",
    "layers", "fusion_ignored",
)  # fmt: skip
OURS, CORRECTED, FORECAST = "LUT", "LUT, corrected", "LUT, forecast"


@dataclass(frozen=True)
class Judged:
    """Predicted and measured latencies of one network's SubNets.

    Attributes:
        measured: mean latency of the rounds ``[n]``, in anchors (as a multiple of the anchor operator's latency).
        again: relative difference of the last round to the first ``[n]``.
        predicted: name of each predictor to its predictions ``[n]``, in anchors.
        places: number of operators that run in each SubNet ``[n]``.
        facts: further columns of the network's rows.
    """

    measured: FloatArray
    again: FloatArray
    predicted: Mapping[str, FloatArray]
    places: FloatArray
    facts: Mapping[str, object]


def rows(judged: Mapping[str, Judged]) -> pd.DataFrame:
    """The table. With two or more networks it also has the LUT with a correction fitted to the other networks."""
    found = []
    for network, one in judged.items():
        predicted = dict(one.predicted)
        others = [other for name, other in judged.items() if name != network]
        if others:
            predicted[CORRECTED] = correct(one, correction(others))
        for name, values in predicted.items():
            found.append({"network": network, "predictor": name, **errors(values, one.measured), **one.facts})
    return pd.DataFrame(found, columns=list(COLUMNS))


def errors(predicted: FloatArray, measured: FloatArray) -> dict[str, float]:
    """Shares within 5 % and 10 %, median absolute and mean signed relative error, Kendall's tau."""
    relative = predicted / measured - 1
    size = np.abs(relative)
    return {
        "within_5": float((size <= 0.05).mean()),
        "within_10": float((size <= 0.10).mean()),
        "median_error": float(np.median(size)),
        "mean_error": float(relative.mean()),
        "tau": kendall_tau(predicted, measured),
    }


def floor(again: FloatArray) -> dict[str, float]:
    """5th and 95th percentile of the relative difference between two rounds."""
    low, high = np.percentile(again, [5, 95])
    return {"floor_5": float(low), "floor_95": float(high)}


def correction(judged: list[Judged]) -> FloatArray:
    """The two parameters of a device: factors of the LUT's sum and of the number of operators.

    The factors minimise the squared relative errors of the judged networks.
    """
    columns = [
        np.stack([one.predicted[OURS] / one.measured, one.places / one.measured], axis=1) / np.sqrt(len(one.measured))
        for one in judged
    ]
    ones = np.concatenate([np.full(len(one.measured), 1 / np.sqrt(len(one.measured))) for one in judged])
    return np.asarray(np.linalg.lstsq(np.concatenate(columns), ones, rcond=None)[0])


def correct(one: Judged, parameters: FloatArray) -> FloatArray:
    """The LUT's predictions, corrected by the two parameters of a device."""
    return np.asarray(parameters[0] * one.predicted[OURS] + parameters[1] * one.places)


def render(frame: pd.DataFrame, title: str) -> Table:
    """The table for a person."""
    table = Table(title=title)
    names = ("network", "predictor", "within 5 %", "within 10 %", "median", "mean", "tau", "minutes", "operators")
    for name in (*names, "floor 5..95 %", "not claimed", "no fusion"):
        table.add_column(name)
    for row in frame.itertuples():
        shares = [f"{value:.0%}" for value in (row.within_5, row.within_10)]
        signed = [f"{row.median_error:.1%}", f"{row.mean_error:+.1%}", f"{row.tau:.3f}", f"{row.profiling_minutes:.1f}"]
        counts = [f"{row.operators} of {row.space_operators}", f"{row.floor_5:+.1%}..{row.floor_95:+.1%}"]
        fusion = f"{row.fusion_ignored:.2f}x" if row.fusion_ignored > 0 else "not run"
        last = [unclaimed(row.unclaimed_layers, row.layers), fusion]
        table.add_row(row.network, row.predictor, *shares, *signed, *counts, *last)
    return table


def unclaimed(missing: int, layers: int) -> str:
    """The number of layers that no operator claims, and their share of the time, as a text.

    Layers that cost almost nothing (Split) are timed with the operator before them. So where all other layers are
    claimed, all of the time is claimed.
    """
    if not layers:
        return "no list"
    return f"{missing} of {layers}, {'time not known' if missing else '0% of the time'}"
