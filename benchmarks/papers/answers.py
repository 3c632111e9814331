"""What a method answers at one budget, kept in a file as soon as it is known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from autotailor.artifacts import atomic
from autotailor.statistics import clustered_mean

OURS = "autotailor"
ARRAYS = ("inherited_right", "polished_right")
Bools = npt.NDArray[np.bool_]
UNKNOWN: Bools = np.zeros(0, dtype=bool)
"""Which test pictures are right, of a SubNet that was not polished."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One SubNet, or network, of one method.

    Attributes:
        method: of the paper.
        seed: of the run.
        budget: percent of the largest SubNet's latency.
        latency: the same, as the table of operators predicts it.
        what: the choices of the SubNet as JSON, or the ratio of a pruned network.
        images: training pictures that its own training has seen; 0 where it keeps what it inherits.
        inherited, polished: percent of the validation pictures that are right before its own training and after; NaN
            where it has had none.
        inherited_right, polished_right: which test pictures are right, or ``UNKNOWN``.
    """

    method: str
    seed: int
    budget: int
    latency: float
    what: str
    images: int
    inherited: float
    polished: float
    inherited_right: Bools
    polished_right: Bools

    def write(self, folder: Path) -> None:
        """Keeps it; an interrupted write leaves no file."""
        folder.mkdir(parents=True, exist_ok=True)
        said = {key: value for key, value in asdict(self).items() if key not in ARRAYS}
        arrays = {key: getattr(self, key) for key in ARRAYS}
        with atomic(self.path(folder, self.method, self.seed, self.budget)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, said=json.dumps(said), **arrays)

    @staticmethod
    def path(folder: Path, method: str, seed: int, budget: int) -> Path:
        """The file of one answer."""
        return folder / f"{method.replace(' ', '_')}_{seed}_{budget:03d}.npz"

    @classmethod
    def read(cls, path: Path) -> Answer:
        """An answer that was kept."""
        with np.load(path) as arrays:
            return cls(**json.loads(str(arrays["said"])), **{key: arrays[key] for key in ARRAYS})


def read_all(folder: Path) -> list[Answer]:
    """All that were kept, by method, seed and budget."""
    return [Answer.read(path) for path in sorted(folder.glob("*.npz"))]


def table(answers: Sequence[Answer], groups: npt.NDArray[Any], order: Sequence[str], ours: str = OURS) -> pd.DataFrame:
    """One row for each method, seed and budget.

    Args:
        answers: of all methods.
        groups: the base picture of each test picture.
        order: of the methods.
        ours: the method that the others are compared with.

    Returns:
        The fields of ``Answer``, accuracies on the test set in percent (``inherited_test``, ``polished_test``), and
        how many points the method is behind ours at the same budget and seed, with the standard error of the pairs.
    """
    compared = {(each.seed, each.budget): each for each in answers if each.method == ours}
    rows = []
    for each in sorted(answers, key=lambda a: (order.index(a.method), a.seed, a.budget)):
        row = {field.name: getattr(each, field.name) for field in fields(each) if field.name not in ARRAYS}
        for name in ("inherited", "polished"):
            right = getattr(each, f"{name}_right")
            if not len(right):
                continue
            row[f"{name}_test"] = 100 * float(right.mean())
            other = compared.get((each.seed, each.budget))
            if other is not None and len(getattr(other, f"{name}_right")):
                apart = getattr(other, f"{name}_right").astype(float) - right
                mean, error = clustered_mean(apart, groups)
                row |= {f"{name}_behind": 100 * mean, f"{name}_error": 100 * error}
        rows.append(row)
    return pd.DataFrame(rows)


def standings(rows: pd.DataFrame, ours: str = OURS) -> Iterator[dict[str, Any]]:
    """At each budget, before polishing and after, the best rival by its mean over seeds, and how far it is ahead.

    Args:
        rows: as ``table`` makes them for the same ``ours``; seeds that ours has not are left out.
        ours: the method that the others are compared with; its variants are no rivals.
    """
    rows = rows[rows["seed"].isin(rows.loc[rows["method"] == ours, "seed"])]
    rows = rows[(rows["method"] == ours) | ~rows["method"].str.startswith(OURS)]
    for name in ("inherited", "polished"):
        known = rows.dropna(subset=[f"{name}_test"])
        for budget, at in known.groupby("budget"):
            means = at.groupby("method")[f"{name}_test"].mean()
            if ours not in means.index:
                continue
            rivals = means.drop(index=ours)
            row: dict[str, Any] = {"weights": name, "budget": budget, "ours": means[ours], "best rival": "none"}
            if len(rivals):
                pairs = at[at["method"] == rivals.idxmax()]
                error = float(np.sqrt(np.square(pairs[f"{name}_error"]).sum())) / len(pairs)
                row |= {"best rival": rivals.idxmax(), "theirs": rivals.max()}
                row |= {"ahead": -pairs[f"{name}_behind"].mean(), "error": error}
            yield row
