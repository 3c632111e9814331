"""A finished run as an object that answers questions: ``autotailor.open_run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from autotailor import data
from autotailor.artifacts import read_json
from autotailor.data.labels import Score
from autotailor.ir.supernet import SuperNet, load_supernet
from autotailor.profiling import LUT, DeviceConfig
from autotailor.runs.folder import RunFolder, open_folder
from autotailor.runs.known_metric import KnownMetric
from autotailor.runs.metrics import Sensitivities, known_metrics
from autotailor.runs.prediction import Agreement, Prediction, accuracy_agreement, latency_agreement, measured
from autotailor.runs.subnets import Subnets, Which


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run; its artifacts are read when they are first needed, and never changed.

    >>> run = autotailor.open_run("results/resnet_digits/host")
    >>> run.predict("budget_02").predicted["latency"].value   # in ms

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
    def lut(self) -> LUT:
        """Latencies of the operators on the device."""
        return LUT.read(self.folder.file("lut.csv"))

    @cached_property
    def device(self) -> DeviceConfig:
        """The device, without its address, serial number and key, which no artifact holds."""
        return DeviceConfig.from_section(self.configuration["device"])

    @property
    def score(self) -> Score:
        """What the share of right answers is called: accuracy, or agreement where the pictures have no labels."""
        return data.score(self.configuration["data"])

    @cached_property
    def metrics(self) -> Mapping[str, KnownMetric]:
        """The metrics that can be predicted, by name."""
        baseline = read_json(self.folder.file("sensitivity.json"))
        rows = pd.read_csv(self.folder.file("sensitivity.csv"))
        sensitivities = Sensitivities(rows, baseline["accuracy"], baseline["standard_error"])
        return known_metrics(self.net, sensitivities, self.lut, self.device, self.score)

    @property
    def unknown_metrics(self) -> Mapping[str, str]:
        """Metrics that this run cannot predict, each with the reason."""
        reason = f"lut.csv holds no energies: device {self.device.name} has no power sensor that could be read"
        return {} if "energy" in self.metrics else {"energy": reason}

    @cached_property
    def subnets(self) -> Subnets:
        """The SubNets that the run knows."""
        return Subnets(self.folder, self.net.space)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """``summary.csv``: the exported SubNets and the original network, predicted and measured."""
        return pd.read_csv(self.folder.file("summary.csv"), dtype={"subnet": str, "weights": str})

    def predict(self, which: Which) -> Prediction:
        """All metrics of one SubNet, with units, standard errors where they are known, and sources.

        Args:
            which: a SubNet of ``run.net``; the name of an export, ``largest`` or ``smallest``; the id of a SubNet in
                the run's tables; a file such as ``subnet.json``; an assignment.

        Raises:
            RunError: there is no such SubNet, or it belongs to another space.
        """
        subnet = self.subnets.find(which)
        rows = self.summary[self.summary["subnet"] == subnet.id].to_dict("records")
        return Prediction(
            subnet,
            tuple(name for name, exported in self.subnets.exported.items() if exported == subnet),
            {name: metric.estimate(subnet) for name, metric in self.metrics.items()},
            measured({str(key): value for key, value in rows[0].items()}) if rows else {},
            str(rows[0]["weights"]) if rows else "",
        )

    def agreements(self) -> tuple[Agreement, ...]:
        """How well the run's predictions have agreed with measurements of whole SubNets."""
        found = (
            latency_agreement(pd.read_csv(self.folder.file("validation.csv"))),
            accuracy_agreement(pd.read_csv(self.folder.file("accuracy_validation.csv"))),
        )
        return tuple(agreement for agreement in found if agreement is not None)


def open_run(folder: str | Path) -> Run:
    """A finished run, for questions.

    Args:
        folder: ``results/MODEL/DEVICE``.

    Raises:
        RunError: the folder is not that of a finished run, or a rule has not run again after an artifact changed.
        ArtifactError: artifacts come from different configurations, or somebody changed one.
    """
    return Run(open_folder(folder))
