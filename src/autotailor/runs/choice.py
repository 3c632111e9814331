"""One more SubNet within a budget, as ``search``, ``confirm`` and ``polish`` choose it, or one that a person names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from autotailor import search, sensitivity
from autotailor.artifacts import read_json
from autotailor.data import DataSplits
from autotailor.finetuning import FinetuneConfig, polishing
from autotailor.finetuning.joint import config_before_race
from autotailor.finetuning.polishing.files import INHERITED, POLISHED
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.measurement import confirmation
from autotailor.measurement.config import ConfirmEffort
from autotailor.profiling import DeviceConfig
from autotailor.profiling.networks.validation import validation_subnets
from autotailor.runs.tables import RunTables
from autotailor.search.candidates import Asked
from autotailor.search.joint.limits import NONE, Limits

EXPORT = "export"
"""Name of the one budget in the tables of an export."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The SubNet of a budget, with the weights that it is exported with.

    Attributes:
        exported: the SubNet, and its own weights where it was polished.
        inherited: accuracy with the SuperNet's weights on the validation set, percent.
        polished: the same with weights of its own; None where the SubNet keeps the SuperNet's.
        candidates: as ``candidates.csv``; None where a person has named the SubNet.
        race: as ``polish.csv``; None where nothing was trained.
        confirmed: as ``confirmed.csv``; None where nothing is chosen, or budgets limit no latency.
    """

    exported: polishing.Exported
    inherited: float
    polished: float | None
    candidates: pd.DataFrame | None
    race: pd.DataFrame | None
    confirmed: pd.DataFrame | None = None

    @property
    def accuracy(self) -> float:
        """Accuracy on the validation set with the weights that are exported, percent."""
        return self.inherited if self.polished is None else self.polished


def choose(
    run: RunTables,
    limit: float,
    data: DataSplits,
    work: Path,
    *,
    polish: bool,
    beside: Limits = NONE,
    share: float | None = None,
    device: DeviceConfig | None = None,
) -> Chosen:
    """The most accurate SubNet within a budget.

    Candidates are those that the rule ``search`` would measure for this budget, and all SubNets that the run has tried
    and that meet the budget. The decision is that of the rule ``confirm``; only what the run has not measured is
    measured now. With ``polish`` they race as in the rule ``polish``, and the polished exports of the run that meet the
    budget take part.

    Args:
        run: the finished run.
        limit: the budget, in the unit of the run's cost.
        data: the splits, with labels.
        work: folder of the journal and of checkpoints, with which an interrupted choice goes on.
        polish: whether SubNets are trained with weights of their own, where the run's configuration has rounds.
        beside: limits of further metrics, which some SubNet keeps together with the budget.
        share: the budget as a share of the largest SubNet's latency, which the budget follows where that is timed now.
        device: on which candidates are timed; None leaves it at what the run has measured.

    Raises:
        SearchError: no SubNet costs so little.
    """
    tried = run.tried
    measured = dict(tried.accuracies)

    def measure(subnets: Sequence[SubNet]) -> search.choice.Accuracies:
        fresh = [subnet for subnet in subnets if subnet.id not in measured]
        if fresh:
            measured.update(accuracies_of(run, fresh, data, work / "candidates.jsonl"))
        return {subnet.id: measured[subnet.id] for subnet in subnets}

    settings = search.SearchConfig.from_section(run.configuration["search"])
    alone = limit if share is None else f"{100 * share:.12f}%"
    budget = {run.cost.name: limit, **beside.named} if beside else alone
    choice = search.choose(run.objectives, run.pareto, [budget], measure, settings, run.forecast, run.further)
    table = choice.table.assign(budget=EXPORT)
    target = Asked(EXPORT, limit, run.forecast_after_sessions.judging(shares=share is not None), beside)
    contest = _contest(run, table, [*choice.subnets.values()], target)
    candidates = search.Candidates({EXPORT: limit}, {EXPORT: contest}, measured)
    contest, best, confirmed = _confirmed(run, candidates, measure, work, beside, share, device)
    accuracies = {subnet.id: measured[subnet.id].accuracy for subnet in contest}
    expected = {subnet.id: measured[subnet.id].posterior for subnet in contest}
    config = polishing.PolishConfig.from_section(run.configuration["polish"]).alone
    if not polish or not config.rounds:
        return Chosen(polishing.Exported(best), accuracies[best.id], None, table, None, confirmed)
    joint = joint_training(run)
    won, race = polishing.polish(
        run.net, run.compiled, data, {EXPORT: contest}, accuracies, config, work, expected, joint
    )
    winner = Chosen(exported(run, won[EXPORT]), won[EXPORT].inherited, won[EXPORT].polished, table, race, confirmed)

    def standing(each: Chosen) -> float:
        """As in the race: of weights of one's own as measured, of the SuperNet's with luck taken out."""
        return expected[each.exported.subnet.id] if each.polished is None else each.polished

    return max([winner, *_earlier(run, target, winner)], key=standing)


def _confirmed(
    run: RunTables,
    candidates: search.Candidates,
    measure: search.choice.Measure,
    work: Path,
    beside: Limits,
    share: float | None,
    device: DeviceConfig | None,
) -> tuple[list[SubNet], SubNet, pd.DataFrame | None]:
    """What competes for the budget, the best of it without polishing, and ``confirmed.csv`` for budgets of latency."""
    if not run.cost.is_measured:
        contest = list(candidates.contests[EXPORT])
        return contest, max(contest, key=lambda subnet: candidates.accuracies[subnet.id].posterior), None
    effort = ConfirmEffort.from_section(run.configuration["confirm"])
    result = confirmation.confirm(
        run.objectives,
        run.pareto,
        candidates,
        run.forecast_after_sessions,
        None if device is None or run.lut is None else confirmation.timing(run.net, device, run.lut, effort, work),
        measure,
        effort.attempts,
        {EXPORT: beside},
        validation_subnets(run.net.space, effort.repeated, run.configuration["validate"]["seed"]),
        run.timings,
        {} if share is None else {EXPORT: share},
        confirmation.BOLDER,
    )
    rows = result.table[result.table["met"] | result.table["chosen"]]
    contest = _rising(run, [SubNet.from_json(run.net.space, text) for text in rows["assignment"]])
    return contest, result.subnets[EXPORT], result.table


def accuracies_of(
    run: RunTables, subnets: Sequence[SubNet], data: DataSplits, journal: Path, trained: SuperNet | None = None
) -> search.choice.Accuracies:
    """Accuracies of SubNets that the run has not measured, evaluated as the run evaluates, by SubNet id.

    ``trained`` is the SuperNet of the run's pool. SubNets then have the pool's weights, and what the run has learnt of
    accuracies does not count.
    """
    sections = run.configuration
    config = sensitivity.SensitivityConfig.from_section(sections["sensitivity"], sections["finetune"]["calibration"])
    net, model = (run.net, run.model) if trained is None else (trained, None)
    return sensitivity.measure_accuracies(net, data, subnets, config, journal, model)


def _contest(run: RunTables, table: pd.DataFrame, chosen: Sequence[SubNet], target: Asked) -> list[SubNet]:
    """New candidates and SubNets that the run has tried that meet the budget, and the chosen one; cheapest first."""
    new = [SubNet.from_json(run.net.space, text) for text in table["assignment"]]
    old = [subnet for contest in run.tried.contests.values() for subnet in contest]
    contest = [subnet for subnet in dict.fromkeys([*new, *old]) if subnet in chosen or _holds(run, subnet, target)]
    return _rising(run, contest)


def _rising(run: RunTables, subnets: Sequence[SubNet]) -> list[SubNet]:
    """SubNets from the lowest predicted cost to the highest."""
    return sorted(subnets, key=lambda subnet: _predicted(run, subnet))


def _predicted(run: RunTables, subnet: SubNet) -> float:
    return float(run.objectives.cost.predict(subnet.to_array())[0])


def _holds(run: RunTables, subnet: SubNet, target: Asked) -> bool:
    """Whether a SubNet meets the budget, by what is predicted and what the run has measured."""
    return target.is_met(subnet, _predicted(run, subnet), run.timings.get(subnet.id, ()))


def exported(run: RunTables, polished: polishing.Polished) -> polishing.Exported:
    """A SubNet with the weights that a race gave it."""
    graph = None if polished.weights is None else run.net.slice(polished.subnet).with_weights(polished.weights)
    return polishing.Exported(polished.subnet, graph)


def joint_training(run: RunTables) -> FinetuneConfig | None:
    """Of the training before the race, in one process; None where the run's configuration has none."""
    sections = run.configuration
    return config_before_race({**sections["polish"], "processes": 1, "nodes": 1}, sections["finetune"])


def _earlier(run: RunTables, target: Asked, winner: Chosen) -> list[Chosen]:
    """The polished exports of the run that meet the budget."""
    return [
        replace(each, candidates=winner.candidates, race=winner.race, confirmed=winner.confirmed)
        for each in _of_run(run)
        if each.exported.graph is not None and _holds(run, each.exported.subnet, target)
    ]


def take(run: RunTables, subnet: SubNet, data: DataSplits, work: Path, *, polish: bool) -> Chosen:
    """One SubNet as it is exported.

    Args:
        run: the finished run.
        subnet: of the run's space.
        data: the splits, with labels.
        work: folder of the journal and of checkpoints, with which an interrupted export goes on.
        polish: whether the SubNet is trained with weights of its own, where the run's configuration has rounds and the
            run has not exported the SubNet; the weights of an export of the run are taken as they are.
    """
    exports = [each for each in _of_run(run) if each.exported.subnet == subnet]
    if not polish:
        exports = [each for each in exports if each.exported.graph is None]
    if exports:
        return max(exports, key=lambda each: each.accuracy)
    measured = accuracies_of(run, [subnet], data, work / "candidates.jsonl")
    inherited = {id_: each.accuracy for id_, each in measured.items()}
    race = polishing.PolishConfig.from_section(run.configuration["polish"]).alone
    if not polish or not race.rounds:
        return Chosen(polishing.Exported(subnet), inherited[subnet.id], None, None, None)
    won, rows = polishing.polish(
        run.net, run.compiled, data, {EXPORT: [subnet]}, inherited, race, work, joint=joint_training(run)
    )
    winner = won[EXPORT]
    return Chosen(exported(run, winner), winner.inherited, winner.polished, None, rows)


def _of_run(run: RunTables) -> list[Chosen]:
    """The exports of the run."""
    files = run.folder.file("polish.json"), run.folder.file("polished.pt")
    accuracies = read_json(files[0])["accuracy_validation"]
    return [
        Chosen(each, accuracies[name][INHERITED], accuracies[name][POLISHED], None, None)
        for name, each in polishing.read_exported(*files, run.net).items()
    ]
