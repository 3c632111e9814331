"""What polishing begins with: the SuperNet, or what a joint training of the candidates has made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotailor.finetuning.joint import train_jointly
from autotailor.finetuning.polishing.race import CANDIDATES
from autotailor.ir.supernet import SuperNet
from controls.budgets import Contest
from controls.run import Run


@dataclass(frozen=True, eq=False)
class Start:
    """Shared weights.

    Attributes:
        net: the SuperNet with these weights.
        accuracies: id of each SubNet that may be polished to its accuracy on the validation set, percent.
        images: of the joint training, which all budgets share; 0 where there was none.
    """

    net: SuperNet
    accuracies: Mapping[str, float]
    images: int = 0


def begin(run: Run, contests: Mapping[int, Contest]) -> Start:
    """Trains the candidates of these budgets together, as the rule ``polish`` does; goes on from its checkpoint."""
    known = {id_: found for contest in contests.values() for id_, found in contest.accuracies.items()}
    if run.joint is None:
        return Start(run.net, known)
    count = run.polish.rounds[0].candidates
    entrants = list(dict.fromkeys(subnet for contest in contests.values() for subnet in contest.first(count)))
    folder = run.folder / "polish_joint" / "_".join(str(budget) for budget in contests)
    found = train_jointly(run.net, run.compiled, run.data, entrants, run.joint, folder, purpose=CANDIDATES)
    return Start(found.net, found.after, found.images) if found.gain > 0 else Start(run.net, known)
