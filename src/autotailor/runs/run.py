"""A finished run as an object that answers questions: ``autotailor.open_run``."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from autotailor.ir.space.subnet import SubNet
from autotailor.runs.exits import ExitsChoice, KnownExits
from autotailor.runs.export import ExportAnswer, export_budget, export_subnet
from autotailor.runs.folder import RunError, open_folder
from autotailor.runs.fronts.answer import FrontAnswer, read_limits
from autotailor.runs.fronts.find import find_front
from autotailor.runs.known_metric import Estimate
from autotailor.runs.metrics import metric_name
from autotailor.runs.prediction import (
    Agreement,
    Prediction,
    accuracy_agreement,
    expectation_agreement,
    latency_agreement,
    measured,
)
from autotailor.runs.subnets import Which
from autotailor.runs.tables import RunTables
from autotailor.search import SearchConfig
from autotailor.search.metrics import Budget


class Run(RunTables):
    """A finished run; its artifacts are read when they are first needed, and never changed.

    >>> run = autotailor.open_run("results/resnet_digits/host")
    >>> run.predict("budget_02").predicted["latency"].value   # in ms
    """

    def predict(self, which: Which) -> Prediction:
        """All metrics of one SubNet, with units, standard errors where they are known, and sources.

        The accuracy of a SubNet that the run has evaluated on the validation set is what was found there, and its
        source says so. An export with early exits has their expected and worst cost as well.

        Args:
            which: a SubNet of ``run.net``; the name of an export, ``largest`` or ``smallest``; the id of a SubNet in
                the run's tables; a file such as ``subnet.json``; an assignment.

        Raises:
            RunError: there is no such SubNet, or it belongs to another space.
        """
        subnet = self.subnets.find(which)
        names = tuple(name for name, exported in self.subnets.exported.items() if exported == subnet)
        early = self.exits.estimates(names) if self.exits else {}
        rows = self.summary[self.summary["subnet"] == subnet.id].to_dict("records")
        return Prediction(
            subnet,
            names,
            {name: self._estimate(name, subnet) for name in self.metrics} | early,
            measured({str(key): value for key, value in rows[0].items()}) if rows else {},
            str(rows[0]["weights"]) if rows else "",
        )

    def choose_exits(self, expected: float | str | None = None, worst: float | str | None = None) -> ExitsChoice:
        """The export, its exits and their thresholds that are most accurate within budgets of a picture's cost.

        Args:
            expected: budget of the mean cost, in the run's unit or as a share of what the costliest export takes
                without exits (``"60%"``); None: there is none.
            worst: the same of the picture that costs most.

        Raises:
            RunError: the run has no exits, or nothing keeps the budgets.
            SearchError: a budget is none.
        """
        return self._known_exits().choose(expected, worst)

    def export_exits(
        self, folder: str | Path, expected: float | str | None = None, worst: float | str | None = None
    ) -> ExitsChoice:
        """Writes the files of what ``choose_exits`` finds into a new folder; ``Chain(FOLDER)`` runs them.

        Args:
            folder: of the files; new or empty.
            expected: see ``choose_exits``.
            worst: see ``choose_exits``.

        Raises:
            RunError: see ``choose_exits``; the folder holds something.
            SearchError: a budget is none.
        """
        return self._known_exits().export(folder, expected, worst)

    def _known_exits(self) -> KnownExits:
        if self.exits is None:
            raise RunError(
                f"{self.folder.path}: the run has no exits, or they were made for other exports; ask for them with "
                "model.space.exits, and run again"
            )
        return self.exits

    def _estimate(self, name: str, subnet: SubNet) -> Estimate:
        """The prediction of a metric; the accuracy of a SubNet that was evaluated is what was found."""
        predicted = self.metrics[name].estimate(subnet)
        if name == "latency" and self.predictions.latency is not None:
            total = float(self.predictions.latency.predict(subnet.to_array())[0])
            return replace(predicted, source=f"{predicted.source}; the sum was {total:.4g} ms")
        own = self.evaluated.get(subnet) if name == "accuracy" else None
        if own is None:
            return predicted
        return replace(own, source=f"{own.source}; the prediction was {predicted.value:.1f} {predicted.unit}")

    def agreements(self) -> tuple[Agreement, ...]:
        """How well the run's predictions have agreed with measurements of whole SubNets."""
        accuracy = accuracy_agreement(pd.read_csv(self.folder.file("accuracy_validation.csv")))
        if self.device is None:
            return () if accuracy is None else (accuracy,)
        latencies = pd.read_csv(self.folder.file("validation.csv"), dtype={"subnet": str})
        agreements = (latency_agreement(latencies), expectation_agreement(latencies), accuracy)
        return tuple(agreement for agreement in agreements if agreement is not None)

    def front(
        self, x: str | None = None, y: str = "accuracy", limits: str | Iterable[str] = (), *, z: str | None = None
    ) -> FrontAnswer:
        """The SubNets that no other one beats in all of two or three metrics, as predicted.

        Args:
            x: name of a metric of ``run.metrics``; by default the one that the run's budgets limit.
            y: name of another one. Accuracy is maximised, every other metric is minimised.
            limits: bounds of any metrics in their units, such as ``["peak_memory<=2", "accuracy>=90"]``; one bound may
                stand alone.
            z: name of a third one.

        Raises:
            RunError: a metric or a limit makes no sense, or no SubNet keeps the limits.
        """
        config = SearchConfig.from_section(self.configuration["search"])
        named = [self.cost.name if x is None else x, y, *([] if z is None else [z])]
        names = tuple(metric_name(name) for name in named)
        return find_front(self.metrics, names, read_limits(limits), config)

    def export(
        self,
        budget: Budget,
        folder: str | Path,
        *,
        polish: bool = True,
        measure: bool = True,
        access: Mapping[str, str] | None = None,
    ) -> ExportAnswer:
        """Exports the SubNet of one more budget; no rule runs again, and the run's folder is not changed.

        The SubNet is chosen among candidates by its accuracy on the validation set, polished, written, verified and
        measured beside the original network, by the functions of the rules. An interrupted export goes on where it
        was, with the same question and folder.

        Args:
            budget: as in ``export.budgets``: a number in ms, a share of the largest SubNet such as ``"48%"``, a
                throughput such as ``"30/s"``; of a run without a device a number in millions, or a count such as
                ``"300M"``; or several limits at once such as ``{"latency": "48%", "peak_memory": 4}``, which are
                raised, with a warning, where no SubNet keeps them.
            folder: of the export; new or empty.
            polish: whether SubNets are trained with weights of their own, where the run's configuration has rounds
                (section ``polish``); without, the export keeps the SuperNet's weights.
            measure: whether latency and memory are measured on the device. Where the run's table was imported, or its
                budgets limit what the graph says, there is no device to measure on.
            access: ``address``, ``serial`` and ``key`` of a remote device, which the run's files do not hold; what is
                missing is taken from ``conf/device`` where the run was started.

        Raises:
            SearchError: no SubNet costs as little as the budget.
            RunError: the folder holds something else, the pictures are not those of the run, or the device cannot be
                reached or is another one.
            ExportError: an exported file does not compute what the SubNet computes.
        """
        return export_budget(self, budget, folder, polish=polish, measure=measure, access=access)

    def export_subnet(
        self,
        which: Which,
        folder: str | Path,
        *,
        polish: bool = True,
        measure: bool = True,
        access: Mapping[str, str] | None = None,
    ) -> ExportAnswer:
        """Exports one SubNet that is named, as ``export`` does with the best one of a budget.

        A SubNet that the run has exported keeps the weights that it was exported with.

        Args:
            which: as in ``predict``.
            folder: of the export; new or empty.
            polish: whether a SubNet that the run has not exported is trained with weights of its own; without, the
                export keeps the SuperNet's weights.
            measure: as in ``export``.
            access: as in ``export``.

        Raises:
            RunError: there is no such SubNet; or as for ``export``.
            ExportError: an exported file does not compute what the SubNet computes.
        """
        subnet = self.subnets.find(which)
        return export_subnet(self, subnet, folder, polish=polish, measure=measure, access=access)


def open_run(folder: str | Path) -> Run:
    """A finished run, for questions.

    Args:
        folder: ``results/MODEL/DEVICE``.

    Raises:
        RunError: the folder is not that of a finished run, or a rule has not run again after an artifact changed.
        ArtifactError: artifacts come from different configurations, or somebody changed one.
    """
    return Run(open_folder(folder))
