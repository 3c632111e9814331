"""Takes the SubNet that a person names, with the weights that the run exported it with, or else polished alone."""

from __future__ import annotations

from pathlib import Path

from autotailor.artifacts import read_json
from autotailor.data import DataSplits
from autotailor.finetuning import polishing
from autotailor.finetuning.polishing.files import INHERITED, POLISHED
from autotailor.ir.space.subnet import SubNet
from autotailor.runs.choice import EXPORT, Chosen, accuracies_of, exported, joint_training
from autotailor.runs.tables import RunTables


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
    found = [each for each in _of_run(run) if each.exported.subnet == subnet]
    if not polish:
        found = [each for each in found if each.exported.graph is None]
    if found:
        return max(found, key=lambda each: each.accuracy)
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
