"""One more export from a finished run: chosen, polished, verified and measured by the functions of the rules.

What is exported is the best SubNet of a budget, or the SubNet that a person names.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from autotailor import accuracy, artifacts, data, export, profiling
from autotailor.compute.accelerator import resolve
from autotailor.data import DataSplits
from autotailor.export.files import ONNX
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.measurement import inheritance, summary
from autotailor.measurement.config import Effort
from autotailor.profiling import DeviceConfig
from autotailor.reporting import write_card
from autotailor.runs.choice import EXPORT, Chosen, choose, take
from autotailor.runs.destination import Destination, destination
from autotailor.runs.folder import RunError
from autotailor.runs.known_metric import Estimate
from autotailor.runs.prediction import measured
from autotailor.runs.reach import check_reachable, device_of
from autotailor.runs.tables import RunTables
from autotailor.search import SearchConfig
from autotailor.search.budgets import budget_limits, budget_shares, forecasts, predicted_limit
from autotailor.search.joint.limits import NONE, Limits, limits_of
from autotailor.search.joint.reach import reach_all
from autotailor.search.metrics import METRICS, Budget
from autotailor.search.robust.forecast import ROUNDING

ANSWER = "export.json"


@dataclass(frozen=True, eq=False)
class ExportAnswer:
    """What was exported.

    Attributes:
        folder: with the files.
        subnet: the SubNet.
        weights: ``inherited`` or ``polished``.
        budget: the limit of latency, or of what else the run's budgets limit; None where a person has named the SubNet.
        unit: of the budget.
        limits: of further metrics beside the budget, in their units.
        asked: budget and limits in the user's words, which were raised where no SubNet keeps all of them; "" without.
        validation: accuracy on the validation set, percent, ``inherited`` and ``polished``; None where not polished.
        predicted: name of a metric to its prediction; accuracy with inherited weights.
        measured: name of a metric to its measurement; without the device, accuracy alone.
        meets_budget: whether the measured latency, or what the graph says, is within the budget; None where latency was
            not measured, or there is no budget.
        seconds: that the export took, after an interruption those of its last part.
    """

    folder: Path
    subnet: SubNet
    weights: str
    budget: float | None
    unit: str
    limits: Mapping[str, float]
    asked: str
    validation: Mapping[str, float | None]
    predicted: Mapping[str, Estimate]
    measured: Mapping[str, Estimate]
    meets_budget: bool | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "folder": str(self.folder),
            "subnet": self.subnet.id,
            "weights": self.weights,
            "budget": None if self.budget is None else {"value": self.budget, "unit": self.unit},
            "limits": {name: {"value": value, "unit": METRICS[name].unit} for name, value in self.limits.items()},
            "asked": self.asked,
            "accuracy_validation": {**self.validation, "unit": "%"},
            "predicted": {name: estimate.to_dict() for name, estimate in self.predicted.items()},
            "measured": {name: estimate.to_dict() for name, estimate in self.measured.items()},
            "meets_budget": self.meets_budget,
            "assignment": self.subnet.assignment,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Asked:
    """What an export is to keep.

    Attributes:
        budget: in the unit of the cost, as the search reads it; None without a budget.
        beside: limits of further metrics.
        share: the budget as a share of the original network's cost; None where it is none.
        words: budget and limits as a person has written them, with units.
    """

    budget: float | None = None
    beside: Limits = NONE
    share: float | None = None
    words: str = ""

    def is_met(self, subnet: SubNet, spent: float, limit: float) -> bool:
        """Whether a SubNet of some cost keeps the budget ``now``; the largest one keeps all of its own latency."""
        is_whole = self.share is not None and self.share >= 1 and subnet == largest(subnet.space)
        return is_whole or spent <= limit * (1 + ROUNDING)

    def now(self, original: Estimate | None) -> float | None:
        """The budget, which as a share is one of what the original network takes, measured beside the export."""
        return self.budget if self.share is None or original is None else self.share * original.value


def export_budget(
    run: RunTables,
    budget: Budget,
    folder: str | Path,
    *,
    polish: bool = True,
    measure: bool = True,
    access: Mapping[str, str] | None = None,
) -> ExportAnswer:
    """See ``Run.export``."""
    limit, beside = _limits(run, budget)
    share = next(iter(budget_shares([budget], run.cost.name).values()), None)

    def chosen(splits: DataSplits, work: Path, device: DeviceConfig | None) -> Chosen:
        return choose(run, limit, splits, work, polish=polish, beside=beside, share=share, device=device)

    question = {run.cost.budget: limit, "polish": polish, **beside.named}
    limits = Asked(limit, beside, share, _words(run, budget))
    return _export(run, chosen, folder, question, limits, measure=measure, access=access)


def _words(run: RunTables, budget: Budget) -> str:
    """A budget in the user's words: ``48%``, or ``latency 20%, peak_memory 2 MiB``."""

    def said(value: float | str, unit: str) -> str:
        return value if isinstance(value, str) else f"{value:.4g} {unit}"

    if isinstance(budget, Mapping):
        units = {name: METRICS[name].unit if name in METRICS else run.cost.unit for name in budget}
        return ", ".join(f"{name} {said(value, units[name])}" for name, value in budget.items())
    name = "" if run.cost.is_measured else f"{run.cost.title} "
    return f"{name}{said(budget, run.cost.unit)}"


def export_subnet(
    run: RunTables,
    subnet: SubNet,
    folder: str | Path,
    *,
    polish: bool = True,
    measure: bool = True,
    access: Mapping[str, str] | None = None,
) -> ExportAnswer:
    """See ``Run.export_subnet``."""

    def chosen(splits: DataSplits, work: Path, _: DeviceConfig | None) -> Chosen:
        return take(run, subnet, splits, work, polish=polish)

    question = {"subnet": subnet.id, "polish": polish}
    return _export(run, chosen, folder, question, Asked(), measure=measure, access=access)


def _export(
    run: RunTables,
    find: Callable[[DataSplits, Path, DeviceConfig | None], Chosen],
    folder: str | Path,
    further: Mapping[str, Any],
    limits: Asked,
    *,
    measure: bool,
    access: Mapping[str, str] | None,
) -> ExportAnswer:
    """Finds a SubNet, and writes, verifies and measures its files.

    Args:
        run: the finished run.
        find: from the run's data, a folder for progress and the device, None where nothing is measured, to the SubNet.
        folder: of the export; new or empty.
        further: what the SubNet depends on, as plain values; the same question goes on where it was interrupted.
        limits: the budget, and the limits beside it.
        measure: whether the SubNet is measured on the device.
        access: how the device is reached.
    """
    begun = time.monotonic()
    measure = measure and run.cost.is_measured and not run.configuration["profile"]["lut"]
    device = device_of(run, access)
    question = {"run": run.folder.provenance.key, "measure": measure, **further}
    with destination(folder, question) as place, surroundings(run):
        if measure and device is not None:
            check_reachable(run, device)
        splits = data_of(run)
        chosen = find(splits, place.work, device if measure else None)
        _write(run, chosen, splits, place, device)
        table = _measure(run, chosen, splits, place, device, measure=measure)
        answer = _answer(run, chosen, table, place, limits, time.monotonic() - begun)
        artifacts.write_json(place.files / ANSWER, answer.to_dict())
        _describe(run, answer, table, place)
        place.finish()
    return answer


def _limits(run: RunTables, budget: Budget) -> tuple[float, Limits]:
    """The budget in the unit of the cost, and the limits beside it, raised where no SubNet keeps them at once.

    Raises:
        SearchError: the budget is invalid, or, without limits beside it, no SubNet costs so little.
    """
    beside = limits_of(budget, run.cost, run.further)
    (limit,) = budget_limits(run.objectives, run.pareto, [budget], run.forecast).values()
    if not beside:
        (judging,) = forecasts([budget], run.cost.name, run.forecast).values()
        predicted_limit(run.pareto, limit, "budget", judging)
        return limit, beside
    config = SearchConfig.from_section(run.configuration["search"])
    budgets, limits = {"budget": limit}, {"budget": beside}
    reached = reach_all(run.objectives, run.pareto, budgets, limits, config, run.forecast)["budget"]
    return reached.budget, reached.limits


@contextlib.contextmanager
def surroundings(run: RunTables) -> Iterator[None]:
    """Computes as the rules do: in the folder of the run, whose paths are relative to it, and with as many threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(run.configuration["threads"])
    try:
        with contextlib.chdir(run.folder.root):
            yield
    finally:
        torch.set_num_threads(threads)


def data_of(run: RunTables) -> DataSplits:
    """The run's data, with labels.

    Raises:
        RunError: the pictures are not those of the run.
        DataError: the pictures are missing.
    """
    section = run.configuration["data"]
    if artifacts.digest(data.fingerprint(section)) != run.folder.provenance.lineage.get("data_content"):
        raise RunError(
            f"data {section['name']}: the pictures are not those of the run {run.folder.path}, so that new accuracies "
            f"could not be compared with the run's; put them back as they were, or run autotailor again in "
            f"{run.folder.root}"
        )
    compiled = run.folder.file("compiled.pt")
    return accuracy.with_labels(data.load(section), compiled, run.configuration["sensitivity"]["accelerator"])


def _write(run: RunTables, chosen: Chosen, splits: DataSplits, place: Destination, device: DeviceConfig | None) -> None:
    """Writes and verifies the network's files, and the tables of the choice."""
    module = run.net.module().eval().to(resolve(run.configuration["accelerator"]))
    calibration = accuracy.CalibrationConfig.from_section(run.configuration["finetune"]["calibration"])
    network = export.deployable(run.net, chosen.exported, module, splits, calibration)
    runtime, tolerance = profiling.exporting_runtime(), run.configuration["export"]["tolerance"]
    needed = device is not None and device.runtime.startswith(runtime.name)
    export.export(
        network,
        place.files,
        splits.test,
        runtime,
        tolerance,
        needed=needed,
        preparation=splits.preparation,
        transparent=accuracy.find_transparent(splits.test, splits.background, labelled=splits.labelled),
    )
    if chosen.candidates is not None:
        chosen.candidates.to_csv(place.files / "candidates.csv", index=False)
    if chosen.confirmed is not None:
        chosen.confirmed.to_csv(place.files / "confirmed.csv", index=False)
    if chosen.race is not None:
        chosen.race.to_csv(place.files / "polish.csv", index=False)


def _measure(
    run: RunTables,
    chosen: Chosen,
    splits: DataSplits,
    place: Destination,
    device: DeviceConfig | None,
    *,
    measure: bool,
) -> pd.DataFrame:
    """Writes ``summary.csv`` with the export and the original network, measured side by side."""
    subnet, work = chosen.exported.subnet, place.work / "measured"
    exported = place.files / ONNX
    models = {
        EXPORT: exported if device is None else profiling.converted_file(exported, device, work / EXPORT),
        summary.ORIGINAL: summary.export_original(run.compiled, device, work),
    }
    calibration = accuracy.CalibrationConfig.from_section(run.configuration["finetune"]["calibration"])
    weights = inheritance.inheritance(run.net, {EXPORT: chosen.exported}, splits, calibration)
    lut, effort = run.lut if measure else None, Effort.from_section(run.configuration.get("measure", {}))
    table = summary.summarise(run.predictions, {EXPORT: subnet}, weights, models, splits.test, device, lut, effort)
    table.to_csv(place.files / "summary.csv", index=False)
    return table


def _describe(run: RunTables, answer: ExportAnswer, table: pd.DataFrame, place: Destination) -> None:
    """Writes the card of the export."""
    rows = {str(row["name"]): {str(key): value for key, value in row.items()} for row in table.to_dict("records")}
    if run.cost.is_measured:
        rows[EXPORT] |= {"budget_ms": answer.budget, "budget_met": answer.meets_budget}
    is_told = answer.budget is not None and answer.asked == f"{answer.budget:.4g} {answer.unit}"
    pair = (run.folder.model, run.folder.device)
    write_card(place.files, EXPORT, run.configuration, rows, asked="" if is_told else answer.asked, pair=pair)


def _answer(
    run: RunTables,
    chosen: Chosen,
    table: pd.DataFrame,
    place: Destination,
    limits: Asked,
    seconds: float,
) -> ExportAnswer:
    subnet = chosen.exported.subnet
    rows = {str(row["name"]): measured({str(k): v for k, v in row.items()}) for row in table.to_dict("records")}
    reached, limit = rows[EXPORT], limits.now(rows[summary.ORIGINAL].get(run.cost.name))
    predicted = {name: metric.estimate(subnet) for name, metric in run.metrics.items()}
    spent = (reached if run.cost.is_measured else predicted).get(run.cost.name)
    return ExportAnswer(
        place.folder,
        subnet,
        chosen.exported.weights,
        limit,
        run.metrics[run.cost.name].unit,
        limits.beside.named,
        limits.words,
        {"inherited": chosen.inherited, "polished": chosen.polished},
        predicted,
        reached,
        None if spent is None or limit is None else limits.is_met(subnet, spent.value, limit),
        seconds,
    )
