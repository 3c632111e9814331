"""``evaluations.csv``: evaluated SubNets with their values and losses of all images."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from autotailor.artifacts import atomic
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Space
from autotailor.prediction.evaluations.outcome import DIVERGENCES, LOSSES, Outcome, PredictionError
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.statistics import accuracy

COLUMNS = ("subnet", "assignment", "accuracy", "standard_error", "right", LOSSES)


def write_outcomes(path: str | Path, outcomes: Outcomes) -> None:
    """Writes ``evaluations.csv``: the largest SubNet and all others, with accuracy in percent and its standard error.

    The columns ``right`` and ``losses`` are those of ``Outcome.packed``; the latter is called ``divergences`` where the
    losses are such.
    """
    rows = [
        (subnet.id, subnet.to_json(), *accuracy(outcome.values, outcomes.groups), *outcome.packed())
        for subnet, outcome in zip([largest(outcomes.space), *outcomes.subnets], outcomes.by_id.values(), strict=True)
    ]
    with atomic(path) as temporary:
        pd.DataFrame(rows, columns=[*COLUMNS[:-1], outcomes.reference.kind]).to_csv(temporary, index=False)


def read_outcomes(path: str | Path, space: Space, groups: npt.ArrayLike, chance: float = 0.0) -> Outcomes:
    """Reads a file of ``write_outcomes``.

    Args:
        path: of the file.
        space: of the SubNets.
        groups: base image of each image on which the SubNets were evaluated.
        chance: mean value that guessing has (``Task.chance``).

    Raises:
        PredictionError: the file holds no evaluations of this space on so many images.
    """
    images = len(np.asarray(groups))
    try:
        table = pd.read_csv(path, dtype={"subnet": str, "right": str, LOSSES: str, DIVERGENCES: str})
        kind = DIVERGENCES if DIVERGENCES in table.columns else LOSSES
        if missing := [column for column in ("assignment", "right", kind) if column not in table.columns]:
            raise ValueError(f"the column {missing[0]} is missing")
        subnets = [SubNet.from_json(space, text) for text in table["assignment"]]
        packed = zip(subnets, table["right"], table[kind], strict=True)
        outcomes = {
            subnet.id: Outcome.unpacked(right, losses, images, kind == DIVERGENCES) for subnet, right, losses in packed
        }
    except (OSError, ValueError, KeyError, TypeError, AutoTailorError) as error:
        raise PredictionError(
            f"{path} holds no evaluations of this space ({error}); run the rule sensitivity"
        ) from error
    return Outcomes.of(space, subnets, outcomes, groups, chance)
