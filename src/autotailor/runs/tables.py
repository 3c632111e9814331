"""The artifacts of a finished run, read when they are first needed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from autotailor import prediction, task
from autotailor.artifacts import read_json
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import SuperNet, load_supernet
from autotailor.measurement.sessions import Timed, of_each_subnet, read_sessions
from autotailor.measurement.summary import Predictions, predictions
from autotailor.profiling import LUT, DeviceConfig, fusion_rules
from autotailor.runs.exits import KnownExits
from autotailor.runs.folder import RunFolder
from autotailor.runs.known_metric import Estimate, KnownMetric
from autotailor.runs.metrics import accuracy_of, known_metrics
from autotailor.runs.subnets import Subnets
from autotailor.search import (
    AS_PREDICTED,
    Candidates,
    Cost,
    Front,
    LatencyForecast,
    Objectives,
    SearchConfig,
    read_candidates,
    read_forecast,
)
from autotailor.search.metrics import METRICS, Further
from autotailor.task.scores import Score

EVALUATED = "evaluated on the validation set, with inherited weights"


@dataclass(frozen=True, eq=False)
class RunTables:
    """What a finished run has found out; its artifacts are never changed.

    Attributes:
        folder: of the run.
    """

    folder: RunFolder

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The whole configuration of the run."""
        return self.folder.configuration

    @cached_property
    def net(self) -> SuperNet:
        """The trained SuperNet."""
        return load_supernet(self.folder.file("supernet.pt"))

    @cached_property
    def compiled(self) -> SuperNet:
        """The SuperNet before its training; its largest SubNet is the original network."""
        return load_supernet(self.folder.file("compiled.pt"))

    @property
    def cost(self) -> Cost:
        """What the run's budgets limit: latency, or what the graph says."""
        return self.folder.cost

    @cached_property
    def lut(self) -> LUT | None:
        """Latencies of the operators on the device; None where the run had no device."""
        return LUT.read(self.folder.file("lut.csv")) if self.cost.is_measured else None

    @cached_property
    def device(self) -> DeviceConfig | None:
        """The device, without its address, serial number and key, which no artifact holds; None where none was."""
        return DeviceConfig.from_section(self.configuration["device"]) if self.cost.is_measured else None

    @property
    def score(self) -> Score:
        """What the share of right answers is called: accuracy, or agreement where the pictures have no labels."""
        return task.score(self.configuration["data"])

    @cached_property
    def predictions(self) -> Predictions:
        """The metrics as the rules predict them."""
        return predictions(self.net, self.accuracy, self.lut, self.device)

    @cached_property
    def metrics(self) -> Mapping[str, KnownMetric]:
        """The metrics that can be predicted, by name; latencies are what the device is expected to take."""
        accuracy = accuracy_of(self.accuracy, self.score)
        return known_metrics(accuracy, self.predictions, self.forecast_after_sessions)

    @cached_property
    def accuracy(self) -> prediction.Accuracy:
        """The run's prediction of accuracy with the SuperNet's weights: ``accuracy.json``."""
        return prediction.read_accuracy(self.folder.file("accuracy.json"), self.net.macs())

    @cached_property
    def objectives(self) -> Objectives:
        """What the run's search has maximised and minimised."""
        predicted = self.predictions
        cost = predicted.latency or self.metrics[self.cost.name].metric
        assert isinstance(cost, Metric)
        return Objectives(predicted.accuracy, cost, (self.net.macs(), self.net.parameters()))

    @cached_property
    def further(self) -> Further:
        """The metrics that a budget can limit beside the cost, by the names of ``export.budgets``."""
        return self.predictions.metrics

    @cached_property
    def pareto(self) -> Front:
        """The front that the run's search has found: ``pareto.csv``."""
        return Front.read(self.folder.file("pareto.csv"), self.net.space, self.cost)

    @cached_property
    def forecast(self) -> LatencyForecast:
        """What the run's search expects of measured latencies; what the graph says needs no measurement."""
        if self.lut is None or self.device is None:
            return AS_PREDICTED
        config = SearchConfig.from_section(self.configuration["search"])
        errors = self.net.latency_error(self.lut.standard_errors(), fusion_rules(self.device))
        return read_forecast(self.folder.file("validation.csv"), config, errors, self.predictions.latency)

    @cached_property
    def forecast_after_sessions(self) -> LatencyForecast:
        """The same, with what the run's later sessions say of how sessions differ."""
        forecast = self.forecast
        for session in self._sessions:
            forecast = forecast.after_session(session)
        return forecast

    @cached_property
    def timings(self) -> Mapping[str, Sequence[Timed]]:
        """Id of a SubNet to the latencies that the run has measured after the rule ``validate``."""
        return of_each_subnet(self._sessions)

    @cached_property
    def _sessions(self) -> Sequence[Mapping[str, Timed]]:
        """What the rules ``confirm`` and ``measure`` have measured."""
        names = ("confirmed.csv", "summary.csv") if self.cost.is_measured else ()
        return read_sessions([self.folder.file(name) for name in names])

    @cached_property
    def tried(self) -> Candidates:
        """The SubNets whose accuracy and, on a device, latency the run has measured for its budgets."""
        names = ("candidates.csv", "confirmed.csv") if self.cost.is_measured else ("candidates.csv",)
        tables = [read_candidates(self.folder.file(name), self.net.space) for name in names]
        contests = {n: [*dict.fromkeys(s for t in tables for s in t.contests[n])] for n in tables[0].limits}
        return Candidates(tables[0].limits, contests, {k: v for t in tables for k, v in t.accuracies.items()})

    @cached_property
    def evaluated(self) -> Mapping[SubNet, Estimate]:
        """Accuracies that the run has evaluated on the validation set: single modifications, and candidates."""
        content = read_json(self.folder.file("sensitivity.json"))
        base, level, error = largest(self.net.space), float(content["accuracy"]), float(content["standard_error"])
        evaluated = {base: Estimate(level, "%", error, f"sensitivity.json: {EVALUATED}")}
        for row in pd.read_csv(self.folder.file("sensitivity.csv")).to_dict("records"):
            variable, drop = self.net.space[row["variable"]], float(row["accuracy_drop"])
            choice = variable.read(row["choice"])
            assert choice is not None
            own = math.hypot(error, float(row["standard_error"]))
            subnet = base.transform(Modification(variable.name, choice))
            evaluated.setdefault(subnet, Estimate(level - drop, "%", own, f"sensitivity.csv: {EVALUATED}"))
        tried = {subnet.id: subnet for contest in self.tried.contests.values() for subnet in contest}
        for id_, subnet in tried.items():
            each = self.tried.accuracies[id_]
            evaluated[subnet] = Estimate(each.accuracy, "%", each.standard_error, f"candidates.csv: {EVALUATED}")
        return evaluated

    @property
    def model(self) -> prediction.AccuracyModel | None:
        """What evaluations have taught about accuracy; None where the prediction is the sum of single drops."""
        return self.accuracy.model

    @property
    def unknown_metrics(self) -> Mapping[str, str]:
        """Metrics that this run cannot predict, each with the reason."""
        if self.device is None:
            reason = f"device={self.folder.device} counts {self.cost.title}, and nothing was measured on a device"
            return dict.fromkeys(("latency", *(name for name, spec in METRICS.items() if spec.on_device)), reason)
        reason = f"lut.csv holds no energies: device {self.device.name} has no power sensor that could be read"
        return dict.fromkeys((name for name in METRICS if name not in self.metrics), reason)

    @cached_property
    def subnets(self) -> Subnets:
        """The SubNets that the run knows."""
        return Subnets(self.folder, self.net.space)

    @cached_property
    def exits(self) -> KnownExits | None:
        """Early exits of the run's exports; None where there are none that fit them."""
        return KnownExits.of(self.folder)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """``summary.csv``: the exported SubNets and the original network, predicted and measured."""
        return pd.read_csv(self.folder.file("summary.csv"), dtype={"subnet": str, "weights": str})
