"""The exported SubNets as models for MLflow: the file, one image of the test set, and what was measured."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from autotailor.artifacts import digest
from autotailor.data import DataSplits, resize
from autotailor.measurement.summary import input_shape
from autotailor.search import Cost
from autotailor.tracking import ExportedModel

TOLD = ("subnet", "weights", "budget_met")


def exported_models(
    table: pd.DataFrame, files: Mapping[str, Path], splits: DataSplits, cost: Cost, folder: Path
) -> Iterator[ExportedModel]:
    """One model for each row of the summary that has a file.

    A budget limits the cost that the summary has. Where the summary has no budgets, because the graph says the cost, a
    model's own cost is its limit: other versions of the model are compared with it if they cost no more.

    Args:
        table: of ``summary.summarise``, with or without budgets.
        files: ONNX files by the names of the exports.
        splits: the first image of the test set is the example of an input.
        cost: what the budgets limit.
        folder: of the examples.
    """
    images, _ = next(iter(splits.test.batches(1)))
    for row in table.to_dict("records"):
        name = str(row["name"])
        if name not in files:
            continue
        example = folder / f"{name}.npy"
        example.parent.mkdir(parents=True, exist_ok=True)
        np.save(example, resize(images, *input_shape(files[name])[2:]).numpy().astype(np.float32))
        numbers = {str(key): float(value) for key, value in row.items() if _is_number(value)}
        told = {key: str(row[key]) for key in TOLD if row.get(key) not in (None, "")}
        yield ExportedModel(
            name, files[name], example, numbers, {**told, "data": digest(splits.fingerprint)}, _limits(numbers, cost)
        )


def _is_number(value: object) -> bool:
    """Whether a value is a number that MLflow keeps; NaN says that nothing was measured."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _limits(numbers: Mapping[str, float], cost: Cost) -> dict[str, float]:
    limit = numbers.get(cost.budget, None if cost.is_measured else numbers.get(cost.reached))
    return {} if limit is None else {cost.reached: limit}
