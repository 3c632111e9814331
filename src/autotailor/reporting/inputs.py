"""The inputs of the report: artifacts on disk, and nothing else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from autotailor.ir.errors import AutoTailorError
from autotailor.reporting.comparison import Comparison
from autotailor.search import METRICS, Cost, cost_of_device
from autotailor.search.front import spread
from autotailor.task.registry import score
from autotailor.task.scores import Score

DRAWN = 200
"""The most SubNets of a front that a page draws and offers: on a screen, the others lie between them."""


class ReportError(AutoTailorError):
    """An artifact that the report needs is missing or invalid."""


@dataclass(frozen=True)
class ReportInputs:
    """Paths of the artifacts; None where an optional artifact was not made.

    Attributes:
        model: name of the model, for the title.
        device: name of the device, for the title.
        pareto: front of the search, predicted (``pareto.csv``).
        summary: the exported SubNets, predicted and measured. The row named ``original`` is the original network.
        validation: predicted against measured latency of SubNets that were not used in profiling.
        accuracy_validation: predicted against measured accuracy.
        sensitivity: accuracy drop of each single modification.
        baseline: accuracy of the unmodified SuperNet (``sensitivity.json``).
        operators: the unique operators of the space.
        lut: latencies of the operators on the device.
        contributors: latency of the exported SubNets by place (see ``contributors``).
        compare: uniformly scaled networks trained alone.
        yardstick: distance of the genetic front from the exact front (``search.json``).
        space: the search space (``space.json``).
        timings: seconds of each stage (``stage``, ``seconds``).
        configuration: the composed configuration as JSON.
        chosen: the exported SubNets' assignments and accuracies (``polish.json``).
        candidates: SubNets that were evaluated for each budget.
        confirmed: SubNets that were measured for each budget before polishing.
        polish: the race of candidates.
        exits: early exits of the exported SubNets (``exits.json``).
        pictures: test pictures with masks or boxes, as labels and networks have them (``pictures.json``).
    """

    model: str
    device: str
    pareto: Path
    summary: Path
    validation: Path | None = None
    accuracy_validation: Path | None = None
    sensitivity: Path | None = None
    baseline: Path | None = None
    operators: Path | None = None
    lut: Path | None = None
    contributors: Path | None = None
    compare: Path | None = None
    yardstick: Path | None = None
    space: Path | None = None
    timings: Path | None = None
    configuration: Path | None = None
    chosen: Path | None = None
    candidates: Path | None = None
    confirmed: Path | None = None
    polish: Path | None = None
    exits: Path | None = None
    pictures: Path | None = None


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pareto": ("subnet", "accuracy_predicted", "latency_ms_expected"),
    "summary": (
        "name",
        "subnet",
        "weights",
        "latency_ms_expected",
        "latency_ms_measured",
        "latency_ms_standard_error",
        "accuracy_predicted",
        "accuracy_predicted_standard_error",
        "accuracy_inherited",
        "accuracy_measured",
        "accuracy_standard_error",
        "parameters_m",
        "macs_m",
        "size_mb",
        "memory_mb_measured",
    ),
    "validation": (
        "subnet",
        "predicted_ms",
        "measured_ms",
        "relative_error",
        "noise_floor",
        "raw_error",
        "anchor_drift",
        "follows",
    ),
    "accuracy_validation": (
        "subnet",
        "predicted",
        "predicted_standard_error",
        "measured",
        "standard_error",
        "own_standard_error",
    ),
    "sensitivity": (
        "variable",
        "choice",
        "accuracy_drop",
        "standard_error",
        "divergence",
        "divergence_standard_error",
    ),
    "operators": ("id", "kind", "feature", "places"),
    "lut": ("operator_id", "latency_ms", "standard_error"),
    "contributors": ("name", "place", "kind", "operator", "latency_ms"),
    "compare": ("name", "subnets", "latency_ms_measured", "accuracy_measured"),
    "timings": ("stage", "seconds"),
    "candidates": ("budget", "subnet", "accuracy_predicted", "accuracy_validation", "accuracy_posterior", "chosen"),
    "confirmed": ("budget", "subnet", "latency_ms_measured", "probability", "chosen", "met"),
    "polish": ("round", "subnet", "budgets", "epochs", "images", "accuracy_before", "accuracy_validation"),
}
"""Columns of each table that the report shows where budgets limit latency, beside those of ``METRICS``."""
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "summary": (
        "weights",
        "accuracy_predicted_standard_error",
        "accuracy_inherited",
        "memory_mb_measured",
    ),
    "validation": ("noise_floor", "raw_error", "anchor_drift", "follows"),
    "accuracy_validation": ("predicted_standard_error", "own_standard_error"),
    "sensitivity": ("divergence", "divergence_standard_error"),
}
"""Columns that runs of before may lack: the report shows a dash in their place."""
FORMERLY = {"latency_ms_expected": "latency_ms_predicted"}
"""Columns that runs of before may lack, and what the report shows in their place."""
ON_DEVICE = ("latency_ms_", "memory_mb_")
"""How columns begin that a run without a device does not have."""
OF_COST = ("pareto", "summary", "compare")
"""Tables with a column of what budgets limit."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "pareto": ("subnet",),
    "summary": ("name",),
    "validation": ("subnet",),
    "accuracy_validation": ("subnet",),
    "sensitivity": ("variable", "choice"),
    "operators": ("id",),
    "lut": ("operator_id",),
    "contributors": ("name", "place"),
    "compare": ("name", "seed"),
    "timings": ("stage",),
    "candidates": ("budget", "subnet"),
    "confirmed": ("budget", "subnet"),
    "polish": ("round", "subnet"),
}
"""Columns that name a row of each table; ``data-row`` joins them with ``|``."""


def needed_columns(name: str, cost: Cost) -> list[str]:
    """The columns that a table needs where budgets limit a cost."""
    further = METRICS.values() if name == "summary" else ()
    columns = list(dict.fromkeys((*COLUMNS[name], *(spec.column for spec in further))))
    if cost.is_measured or name not in OF_COST:
        return columns
    absent = {spec.column for spec in further if spec.on_device}
    return [name for name in columns if not name.startswith(ON_DEVICE) and name not in absent] + [cost.column]


def optional_columns(name: str) -> list[str]:
    """Columns that a table may lack."""
    columns = [spec.column for spec in METRICS.values()] if name == "summary" else []
    return [*OPTIONAL.get(name, ()), *(column for column in columns if column not in COLUMNS[name])]


class Tables:
    """Reads the artifacts; missing ones are None."""

    def __init__(self, inputs: ReportInputs) -> None:
        self.inputs = inputs
        self._documents: dict[str, Any] = {}

    names = tuple(COLUMNS)

    def file(self, name: str) -> str:
        """File name of an input, for ``data-source``."""
        path: Path = getattr(self.inputs, name)
        return path.name

    def table(self, name: str) -> pd.DataFrame | None:
        """A CSV artifact, with its rows indexed by ``KEYS``; None where it is missing or has no rows."""
        return self._tables[name]

    def needed(self, name: str) -> pd.DataFrame:
        """A CSV artifact that the report cannot do without.

        Raises:
            ReportError: the artifact is missing or has no rows.
        """
        table = self.table(name)
        if table is None:
            raise ReportError(f"{name}.csv: expected a table with rows for the report; run the rule that writes it")
        return table

    def drawn_front(self) -> pd.DataFrame:
        """Rows of ``pareto.csv`` by rising cost; of a long front the best within ``DRAWN`` budgets."""
        rows = self.needed("pareto").sort_values(self.cost.expected)
        return rows.iloc[spread(rows[self.cost.expected].to_numpy(dtype=np.float64), DRAWN)]

    @cached_property
    def has_divergences(self) -> bool:
        """Whether ``sensitivity.csv`` says how far the answers of each modified network are from the network's."""
        table = self.table("sensitivity")
        return table is not None and bool(table["divergence"].notna().all())

    def evaluated(self) -> pd.DataFrame:
        """Rows of ``candidates.csv`` by the id of the SubNet, each once; without rows where nothing was evaluated."""
        rows = self.table("candidates")
        rows = pd.DataFrame({"subnet": []}) if rows is None else rows.reset_index()
        return rows.drop_duplicates("subnet").set_index("subnet")

    def number(self, name: str, row: str, column: str) -> float:
        """One number of a CSV artifact; NaN where the cell is empty."""
        value: Any = self.needed(name).loc[row, column]
        return float(value)

    def value(self, name: str, row: str, column: str) -> Any:
        """What stands in a cell of a CSV artifact; None where the table lacks the column."""
        table = self.needed(name)
        value: Any = table.loc[row, column] if column in table else None
        return value.item() if hasattr(value, "item") else value

    def entry(self, name: str, path: tuple[str, ...]) -> Any:
        """What stands in a JSON artifact below some keys; None where a key is missing."""
        value = self.document(name)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def document(self, name: str) -> Any | None:
        """A JSON artifact; None where it is missing."""
        path: Path | None = getattr(self.inputs, name)
        if path is None:
            return None
        if name not in self._documents:
            self._documents[name] = _read_document(path)
        return self._documents[name]

    @property
    def score(self) -> Score:
        """The name of the share of right answers, by the data of the configuration."""
        return score((self.document("configuration") or {}).get("data", {}))

    @cached_property
    def cost(self) -> Cost:
        """What budgets limit, by the device of the configuration; latency without a configuration."""
        return cost_of_device((self.document("configuration") or {}).get("device", {}))

    @cached_property
    def compared(self) -> Comparison:
        """The exported SubNets beside the network that they are compared with."""
        return Comparison(self.needed("summary"), self.cost)

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame | None]:
        return {name: _read(getattr(self.inputs, name), name, needed_columns(name, self.cost)) for name in COLUMNS}


def _read(path: Path | None, name: str, needed: list[str]) -> pd.DataFrame | None:
    """Reads a table and checks its columns."""
    if path is None:
        return None
    keys = dict.fromkeys(KEYS[name], str)
    try:
        table = pd.read_csv(path, dtype=keys, keep_default_na=True)
    except (OSError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ReportError(f"{path}: expected a CSV table ({error}); run the rule that writes it again") from error
    for column in optional_columns(name):
        if column in needed and column not in table.columns:
            table[column] = float("nan")
    for column, former in FORMERLY.items():
        if column not in table.columns and former in table.columns:
            table[column] = table[former]
    if missing := [column for column in needed if column not in table.columns]:
        raise ReportError(f"{path}: column {missing[0]!r} is missing, expected {', '.join(needed)}; run its rule again")
    present = [key for key in KEYS[name] if key in table.columns]
    table.index = pd.Index(table[present].fillna("").agg("|".join, axis=1))
    if table.index.has_duplicates:
        table.index = pd.Index([f"{key}#{i}" for i, key in enumerate(table.index)])
    return table if len(table) else None


def _read_document(path: Path) -> Any:
    """Reads a JSON artifact."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ReportError(f"{path}: expected a JSON artifact ({error}); run the rule that writes it again") from error
