"""The SubNets that compete for each budget, chosen as the rule ``search`` chooses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from learnt import learnt_accuracy

from autotailor import search, sensitivity
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
        return max(self.subnets, key=lambda subnet: self.accuracies[subnet.id])


def contests(run: Run) -> dict[int, Contest]:
    """Budget (percent) to its contest, for the budgets that the space reaches; searched once, then read."""
    path, whole = run.folder / "candidates.csv", float(run.cost.predict(run.net.largest().to_array())[0])
    if not path.exists():
        _choose(run, whole).write(path)
    found = search.read_candidates(path, run.net.space)
    accuracies = {id_: each.accuracy for id_, each in found.accuracies.items()}
    return {
        round(100 * found.limits[name] / whole): Contest(subnets, accuracies)
        for name, subnets in found.contests.items()
    }


def _choose(run: Run, whole: float) -> search.Choice:
    """Candidates of all budgets that some SubNet meets."""
    net, settings = run.net, run.configuration
    section = settings["sensitivity"] | {"calibration": settings["finetune"]["calibration"]}
    known = sensitivity.SensitivityConfig.from_section(section)
    config = search.SearchConfig.from_section(settings["search"])
    least = float(run.cost.predict(net.smallest().to_array())[0])
    reached = [f"{share}%" for share in BUDGETS if share / 100 * whole >= least]
    predicted = learnt_accuracy(net, run.data, known, config, run.cost, reached, run.folder)
    objectives = search.Objectives(predicted, run.cost)
    front = search.search(objectives, config).front
    measure = partial(
        sensitivity.measure_accuracies,
        net,
        run.data,
        config=known,
        journal=run.folder / "candidates.jsonl",
    )
    return search.choose(objectives, front, reached, measure, config)
