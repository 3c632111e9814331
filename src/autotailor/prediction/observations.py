"""What a fit reads of evaluations: one number with its noise for each SubNet, without the answers to single images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, SubNet, largest
from autotailor.ir.space.variable import Modification, Space
from autotailor.prediction.errors import PredictionError


@dataclass(frozen=True, eq=False)
class Observations:
    """Log-odds of evaluated SubNets against the largest SubNet, and the variances of their noise.

    ``autotailor.prediction.outcomes`` says how each follows from the answers.

    Attributes:
        space: of the SubNets.
        indices: choice indices of the SubNets ``[n, variables]``; distinct, and without the largest SubNet.
        target: log-odds against the largest SubNet ``[n]``.
        independent: variance over draws of images that each target has for itself ``[n]``.
        shared: variance over draws of images that all targets have in common.
        level: the same of the log-odds themselves, which the largest SubNet has in common with all others.
        baseline: log-odds of the largest SubNet.
    """

    space: Space
    indices: IntArray
    target: FloatArray
    independent: FloatArray
    shared: float
    level: float
    baseline: float

    @property
    def is_whole(self) -> npt.NDArray[np.bool_]:
        """Whether each SubNet has more than one modification ``[n]``."""
        return np.asarray((self.indices != largest(self.space).to_array()).sum(axis=1) > 1)

    def updated(self, later: Observations) -> Observations:
        """These observations with later ones, perhaps on other images, in the place of those of the same SubNets.

        The log-odds of the largest SubNet, and what all targets have in common, are those of the later images.
        """
        replaced = {row.tobytes() for row in later.indices}
        kept = np.array([row.tobytes() not in replaced for row in self.indices], dtype=np.bool_)
        return replace(
            later,
            indices=np.concatenate([self.indices[kept], later.indices]),
            target=np.concatenate([self.target[kept], later.target]),
            independent=np.concatenate([self.independent[kept], later.independent]),
        )

    def drops(self) -> dict[str, FloatArray]:
        """Variable to the target of each of its choices alone, 0 for the unmodified choice (paper, eq. 2, as log-odds).

        Raises:
            PredictionError: a single modification was not evaluated.
        """
        base = largest(self.space)
        seen = [SubNet.from_array(self.space, row) for row in self.indices]
        known = {base: 0.0, **dict(zip(seen, self.target.tolist(), strict=True))}
        found = {}
        for variable in self.space:
            alone = [base.transform(Modification(variable.name, choice)) for choice in variable.choices]
            if missing := [c for c, subnet in zip(variable.choices, alone, strict=True) if subnet not in known]:
                raise PredictionError(f"{variable.name} = {missing[0]} alone was not evaluated; evaluate it first")
            found[variable.name] = np.array([known[subnet] for subnet in alone])
        return found
