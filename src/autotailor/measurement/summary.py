"""``summary.csv``: the exported SubNets and the original network, predicted and measured."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pandas as pd

from autotailor.data import EvaluationSet
from autotailor.export import accuracy_of_onnx
from autotailor.ir.space.link import IDENTITY, Link
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.supernet import SuperNet
from autotailor.measurement.config import Effort
from autotailor.measurement.sessions import SHARE, timed
from autotailor.prediction import Accuracy, DropError, ModelError
from autotailor.profiling import (
    LUT,
    DeviceConfig,
    ProfilingError,
    Session,
    convert,
    fusion_rules,
    mean_of_rounds,
    measure_baseline,
    measure_memory,
    measure_rounds,
)
from autotailor.search.metrics import METRICS, Further, Sources, all_metrics
from autotailor.statistics import accuracy_drop
from autotailor.task.registry import of

logger = logging.getLogger(__name__)

Networks = Mapping[str, tuple[Path, tuple[int, ...]]]
"""Maps a network's name to the folder with its files and to the shape of its input."""
COLUMNS = (
    "name",
    "subnet",
    "weights",
    *(f"latency_ms_{kind}" for kind in ("predicted", "expected", "measured", "standard_error", "raw")),
    *SHARE,
    "measured_at",
    "budget_ms",
    "budget_met",
    "accuracy_predicted",
    "accuracy_predicted_standard_error",
    *(f"accuracy_{kind}" for kind in ("inherited", "measured", "standard_error", "change_standard_error")),
    "parameters_m",
    "macs_m",
    "size_mb",
    "memory_mb_predicted",
    "memory_mb_measured",
    "energy_mj_predicted",
)
"""Columns of ``summary.csv``; those of latency, budgets, memory and energy are left out without a device. Those of
further ``METRICS`` follow."""
ORIGINAL, LARGEST = "original", "largest"


@dataclass(frozen=True)
class Predictions:
    """The predicted metrics of SubNets.

    Attributes:
        accuracy: percent.
        accuracy_error: standard errors of accuracy, points; None where they are not known.
        latency: milliseconds; None without a device.
        metrics: further ones that can be predicted, by the names of ``METRICS``.
    """

    accuracy: Metric
    accuracy_error: DropError | ModelError | None
    latency: Metric | None
    metrics: Further


def predictions(net: SuperNet, accuracy_of: Accuracy, lut: LUT | None, device: DeviceConfig | None) -> Predictions:
    """All predictions of a SuperNet on a device, or what the graph says without one.

    Args:
        net: the SuperNet.
        accuracy_of: accuracy of the SuperNet's SubNets, as the rule search predicts it.
        lut: of the device; None without a device.
        device: whose runtime gives the fusion rules; None without a device.

    Raises:
        GraphError: the LUT lacks an operator.
    """
    if lut is None or device is None:
        return Predictions(accuracy_of.metric, accuracy_of.error, None, all_metrics(Sources(net)))
    fusion = fusion_rules(device)
    metrics = all_metrics(Sources(net, fusion, lut.column, device.number_bytes))
    return Predictions(accuracy_of.metric, accuracy_of.error, net.latency(lut.latencies(), fusion), metrics)


def export_original(net: SuperNet, device: DeviceConfig | None, directory: Path) -> Path:
    """Writes the original network as ONNX and as the runtime's files.

    Args:
        net: the SuperNet as compiled; its largest SubNet is the original network.
        device: whose runtime converts the network; None for ONNX alone.
        directory: of the files.

    Returns:
        Path of the ONNX file.
    """
    path = directory / ORIGINAL / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    net.export_onnx(net.largest(), path)
    if device is not None:
        convert(path, path.parent, device)
    return path


def summarise(
    predictions: Predictions,
    subnets: Mapping[str, SubNet],
    weights: pd.DataFrame,
    models: Mapping[str, Path],
    test: EvaluationSet,
    device: DeviceConfig | None,
    lut: LUT | None,
    effort: Effort,
    link: Link = IDENTITY,
) -> pd.DataFrame:
    """One row for each exported SubNet and one for the original network.

    Args:
        predictions: the predicted metrics; accuracy is predicted for inherited weights, on the validation set.
        subnets: SubNets by name.
        weights: origin of the weights of each (``inheritance``).
        models: ONNX files by name, including ``original``; the runtime's files lie beside each.
        test: the test set.
        device: on which latencies are measured, all networks interleaved. With None, the table has no columns of
            latency, memory and energy.
        lut: its anchor operator corrects the machine's drift since the LUT was measured. With None, the device is not
            available; latencies are not measured, and their columns stay empty.
        effort: how often and for how long each network is timed.
        link: from predicted latencies to those that the device is expected to take, both in ms.

    Returns:
        Columns name, subnet (id), weights (inherited or polished), latency_ms_predicted (a sum of operators),
        latency_ms_expected (through the link), latency_ms_measured (scaled by the anchor operator to the machine's
        speed while the LUT was measured), latency_ms_standard_error, latency_ms_raw (not scaled), share_measured (of
        the largest SubNet's latency in the same rounds), share_standard_error, measured_at (UTC, ISO 8601),
        accuracy_predicted, accuracy_predicted_standard_error (points; empty where it is not known), accuracy_inherited
        (with the SuperNet's weights, test set, percent), accuracy_measured (of the exported file, test set, percent),
        accuracy_standard_error (clustered by base image), accuracy_change_standard_error (of accuracy_measured minus
        that of ``original``, points: both see the same images, so that the error is paired; empty for ``original``),
        parameters_m, macs_m, size_mb (of the ONNX file), memory_mb_predicted, memory_mb_measured (peak of an inference
        minus the peak of an empty network), energy_mj_predicted (above idle; empty without a sensor).
    """
    table = _predicted(predictions, subnets, link)
    table = table.merge(_measured_accuracy(models, test), on="name", validate="one_to_one")
    if device is not None:
        networks = {name: (path.parent, input_shape(path)) for name, path in models.items()}
        measured = measured_on_device(networks, device, lut, effort)
        table = table.merge(measured, on="name", validate="one_to_one")
    table = table.merge(weights, on="name", how="left", validate="one_to_one").fillna({"weights": ""})
    return _in_order(table)


def with_budgets(
    table: pd.DataFrame, limits: Mapping[str, float], shares: Mapping[str, float] = MappingProxyType({})
) -> pd.DataFrame:
    """``summary.csv`` with the budget of each export and whether its measured latency keeps the budget.

    Args:
        table: of ``summarise``, with a device.
        limits: name of an export to its budget, ms; the largest SubNet and the original network have none.
        shares: name of an export to its budget as a share of the largest SubNet's latency (``budget_shares``). Where
            the largest SubNet was measured, the share is of that latency, in the same session as the export's.

    Returns:
        The table with the columns ``budget_ms`` and ``budget_met`` (True or False; both are empty without a budget, and
        the latter where nothing was measured). A warning names each export that misses its budget. The largest SubNet
        meets a share of at least 1, whatever two measurements of it differ by.
    """
    budget = table["name"].map({**limits, **_shares_now(table, limits, shares)}).astype(float)
    measured = table["latency_ms_measured"]
    met = (measured <= budget) | table["name"].isin(_whole(table, shares))
    for name, cost, limit, is_met in zip(table["name"], measured, budget, met, strict=True):
        if cost > limit and not is_met:
            logger.warning(
                "%s: measured at %.4g ms, above its budget of %.4g ms; measure again on a quiet device, or raise "
                "search.confidence",
                *(name, cost, limit),
            )
    told = met.astype(object).where(budget.notna() & measured.notna(), None)
    table = table.assign(budget_ms=budget, budget_met=told)
    return _in_order(table)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns in the order of ``COLUMNS``, then those of other metrics."""
    columns = dict.fromkeys((*COLUMNS, *(spec.column for spec in METRICS.values())))
    return table[[column for column in columns if column in table]]


def _whole(table: pd.DataFrame, shares: Mapping[str, float]) -> list[str]:
    """The exports that are the largest SubNet and may take all of its latency."""
    largest_id = table.loc[table["name"] == LARGEST, "subnet"]
    return [str(name) for name in table.loc[table["subnet"].isin(largest_id), "name"] if shares.get(name, 0.0) >= 1.0]


def _shares_now(table: pd.DataFrame, limits: Mapping[str, float], shares: Mapping[str, float]) -> dict[str, float]:
    """What budgets that are shares come to in this session, ms; empty where the largest SubNet was not measured."""
    whole = table.loc[(table["name"] == LARGEST) & table["latency_ms_measured"].notna()]
    if whole.empty or not shares:
        return {}
    whole_ms = float(whole["latency_ms_measured"].iloc[0])
    return {name: share * whole_ms for name, share in shares.items() if name in limits}


def _predicted(predictions: Predictions, subnets: Mapping[str, SubNet], link: Link) -> pd.DataFrame:
    """Predictions of the SubNets and the original network.

    The original network has the shape of the largest SubNet, but other weights. Therefore its latency is predicted,
    and its accuracy is not.
    """
    rows = {**subnets, ORIGINAL: largest(predictions.accuracy.space)}
    array = np.stack([subnet.to_array() for subnet in rows.values()])
    is_original = np.array([name == ORIGINAL for name in rows])
    error = predictions.accuracy_error
    table = pd.DataFrame(
        {
            "name": list(rows),
            "subnet": ["" if name == ORIGINAL else subnet.id for name, subnet in rows.items()],
            "accuracy_predicted": np.where(is_original, np.nan, predictions.accuracy.predict(array)),
            "accuracy_predicted_standard_error": np.where(
                is_original, np.nan, error.predict(array) if error else np.nan
            ),
        }
    )
    if predictions.latency is not None:
        table["latency_ms_predicted"] = predictions.latency.predict(array)
        table["latency_ms_expected"] = link.value(table["latency_ms_predicted"].to_numpy())
    for name, spec in METRICS.items():
        if not spec.on_device or predictions.latency is not None:
            metric = predictions.metrics.get(name)
            table[spec.column] = np.nan if metric is None else metric.predict(array)
    return table


def measured_on_device(networks: Networks, device: DeviceConfig, lut: LUT | None, effort: Effort) -> pd.DataFrame:
    """Latency (ms), scaled with its standard error and not scaled, its share of the largest SubNet's, and peak memory.

    All are NaN without a LUT. Memory is in MiB.

    Args:
        networks: by name.
        device: on which they are timed, all interleaved.
        lut: its anchor operator corrects the machine's drift.
        effort: how often and for how long each network is timed.

    Returns:
        One row for each network: name, latency_ms_measured, latency_ms_standard_error, latency_ms_raw,
        memory_mb_measured, and the columns of ``SHARE``.
    """
    table = pd.DataFrame({"name": list(networks)})
    table[["latency_ms_measured", "latency_ms_standard_error", "latency_ms_raw", "memory_mb_measured", *SHARE]] = np.nan
    table["measured_at"] = None
    if lut is not None:
        with Session(device) as session:
            rounds = measure_rounds(networks, session, effort.rounds, seconds_each=effort.seconds, lut=lut)
            rows = mean_of_rounds(rounds)
            table["memory_mb_measured"] = list(_measured_memory(networks, session).values())
        table["latency_ms_measured"] = [row.latency_ms for row in rows]
        table["latency_ms_standard_error"] = [row.standard_error for row in rows]
        table["latency_ms_raw"] = [row.raw_ms for row in rows]
        shares = timed(rounds, LARGEST)
        table[list(SHARE)] = [(shares[row.key].share, shares[row.key].share_error) for row in rows]
        table["measured_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    return table


def _measured_memory(networks: Networks, session: Session) -> dict[str, float]:
    """Peak memory of an inference minus that of an empty network (MiB); NaN where the device does not report it."""
    try:
        baseline = measure_baseline(session)
        return {name: use.running_mb - baseline for name, use in measure_memory(networks, session).items()}
    except ProfilingError as error:
        logger.warning("peak memory is not measured: %s; the rule measure tries again when it runs again", error)
        return dict.fromkeys(networks, np.nan)


def _measured_accuracy(models: Mapping[str, Path], test: EvaluationSet) -> pd.DataFrame:
    """Accuracy of ONNX files on the test set (percent) with its standard errors, and the files' size (MB)."""
    task, values = of(test), {name: accuracy_of_onnx(path, test) for name, path in models.items()}
    rows = [
        (
            name,
            *task.total(values[name], test.groups),
            np.nan if name == ORIGINAL else accuracy_drop(values[ORIGINAL], values[name], test.groups)[1],
            path.stat().st_size / 1e6,
        )
        for name, path in models.items()
    ]
    errors = ["accuracy_standard_error", "accuracy_change_standard_error"]
    return pd.DataFrame(rows, columns=["name", "accuracy_measured", *errors, "size_mb"])


def input_shape(path: Path) -> tuple[int, ...]:
    """Shape ``[1, 3, r, r]`` of an ONNX file's input."""
    shape = onnx.load(str(path), load_external_data=False).graph.input[0].type.tensor_type.shape
    return tuple(dimension.dim_value for dimension in shape.dim)
