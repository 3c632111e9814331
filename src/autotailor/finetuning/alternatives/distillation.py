"""Rule ``distil``: alternatives of blocks learn each alone, and then where SubNets have them.

Alone, each reads what its block reads in the given network; together, what reaches it in a SubNet. Either part alone is
worse after as many pictures (docs/results/branches.md).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.data.splits import DataSplits
from autotailor.finetuning.alternatives.branches import parts_of, train_alone
from autotailor.finetuning.alternatives.own_path import train_on_path
from autotailor.finetuning.config import DistilConfig
from autotailor.finetuning.training.states.contents import Row
from autotailor.finetuning.training.watch import Record, behind, no_record
from autotailor.ir.supernet import SuperNet

LOWER = 0.5
"""Learning rate of the part in SubNets, over that of the part alone, which its steps continue."""


@dataclass(frozen=True, eq=False)
class DistilResult:
    """The SuperNet with its branches trained.

    Attributes:
        net: whose largest SubNet is the one that it was.
        errors: choice to the mean error of its branches in closed form and when each was trained alone, on pictures of
            the validation set: the mean square of what a branch leaves of what its block says, as a share of the
            latter's variance.
        kept: number of branches that kept their beginning when they were trained alone.
        reused: number of branches that an earlier rule has trained.
        history: one row for each epoch; none of branches alone where all are known.
        on_path: the same error of all blocks of SubNets that have alternatives, before and after these were trained
            there; none where they were not.
    """

    net: SuperNet
    errors: dict[str, tuple[float, float]]
    kept: int
    reused: int
    history: list[Row]
    on_path: tuple[float, float] | None = None


def distil(
    net: SuperNet,
    data: DataSplits,
    config: DistilConfig,
    workdir: str | Path,
    record: Record = no_record,
    store: Path | None = None,
) -> DistilResult:
    """Trains the alternatives of blocks; goes on from checkpoints in ``workdir``.

    Args:
        net: with its alternatives in closed form.
        data: the splits; labels are not looked at.
        config: of the training.
        workdir: folder of the checkpoints.
        record: takes the metrics of each epoch.
        store: folder of what branches have learnt alone in earlier runs; without one all are trained.

    Raises:
        TrainingError: the loss is no longer a finite number, or a checkpoint is of another training.
    """
    parts, workdir = parts_of(net.graph), Path(workdir)
    if not config.images or not parts:
        return DistilResult(net, {}, len(parts), 0, [])
    together = round(config.own_path * config.images)
    each = replace(config, own_path=0.0, images=max(1, config.images - together))
    alone = train_alone(net.graph, parts, data, each, workdir, record, store)
    pairs = defaultdict[str, list[tuple[float, float]]](list)
    for part, learnt in alone.learnt.items():
        pairs[part.choice].append((learnt.before, learnt.after if learnt.is_better else learnt.before))
    errors: dict[str, Any] = {choice: tuple(np.mean(pairs[choice], axis=0).tolist()) for choice in sorted(pairs)}
    kept = sum(not learnt.is_better for learnt in alone.learnt.values())
    result = DistilResult(net.with_weights(alone.weights), errors, kept, alone.reused, alone.history)
    if not together:
        return result
    begun, later = len(alone.history), replace(each, images=together, lr=LOWER * each.lr)
    path = train_on_path(result.net, data, later, workdir, behind(record, begun))
    history = [*alone.history, *({**row, "epoch": row["epoch"] + begun} for row in path.history)]
    return replace(result, net=path.net, history=history, on_path=(path.before, path.after))
