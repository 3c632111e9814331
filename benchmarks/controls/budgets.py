"""The SubNets that compete for each budget, chosen as the rule ``search`` chooses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from learnt import learnt_accuracy

from autotailor import search, sensitivity
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet
from controls.run import Run

BUDGETS = (15, 20, 30, 40, 50, 60, 70, 80)
"""Percent of the original network's latency."""


@dataclass(frozen=True, eq=False)
class Contest:
    """The SubNets within one budget.

    Attributes:
        subnets: those whose accuracy was measured.
        accuracies: id of a SubNet to accuracy with the SuperNet's weights on the validation set, percent.
    """

    subnets: Sequence[SubNet]
    accuracies: Mapping[str, float]

    @property
    def best(self) -> SubNet:
        """The most accurate SubNet with the SuperNet's weights."""
        return self.first(1)[0]

    def first(self, count: int) -> list[SubNet]:
        """The most accurate SubNets with the SuperNet's weights, the first of equals first."""
        return sorted(self.subnets, key=lambda subnet: -self.accuracies[subnet.id])[:count]


def contests(run: Run) -> dict[int, Contest]:
    """Budget (percent) to its contest, for the budgets that the space reaches; searched once, then read."""
    path, whole = run.folder / "candidates.csv", float(run.cost.predict(run.net.largest().to_array())[0])
    if not path.exists():
        _choose(run).write(path)
    found = search.read_candidates(path, run.net.space)
    accuracies = {id_: each.accuracy for id_, each in found.accuracies.items()}
    return {
        round(100 * found.limits[name] / whole): Contest(subnets, accuracies)
        for name, subnets in found.contests.items()
    }


def predicted_accuracy(run: Run) -> Metric:
    """The prediction of accuracy that candidates are chosen by; evaluations are read from their journals."""
    return learnt_accuracy(run.net, run.data, evaluation(run), searching(run), run.cost, _reached(run), run.folder)


def evaluation(run: Run) -> sensitivity.SensitivityConfig:
    """How SubNets with the SuperNet's weights are evaluated."""
    settings = run.configuration
    return sensitivity.SensitivityConfig.from_section(settings["sensitivity"], settings["finetune"]["calibration"])


def _choose(run: Run) -> search.Choice:
    """Candidates of all budgets that some SubNet meets."""
    config = searching(run)
    objectives = search.Objectives(predicted_accuracy(run), run.cost)
    front = search.search(objectives, config).front
    measure = partial(
        sensitivity.measure_accuracies,
        run.net,
        run.data,
        config=evaluation(run),
        journal=run.folder / "candidates.jsonl",
    )
    return search.choose(objectives, front, _reached(run), measure, config)


def searching(run: Run) -> search.SearchConfig:
    """How the rule ``search`` searches in this run."""
    return search.SearchConfig.from_section(run.configuration["search"])


def _reached(run: Run) -> list[str]:
    """Budgets that some SubNet meets."""
    smallest, whole = (float(run.cost.predict(s.to_array())[0]) for s in (run.net.smallest(), run.net.largest()))
    return [f"{share}%" for share in BUDGETS if share / 100 * whole >= smallest]
