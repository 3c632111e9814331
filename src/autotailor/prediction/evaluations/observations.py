"""What a fit reads of evaluations: a few numbers for each SubNet, without the answers to single images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, SubNet, largest
from autotailor.ir.space.variable import Modification, Space
from autotailor.prediction.evaluations.outcome import PredictionError

LOOSE = 1e6
"""Variance, in squared log-odds, that is added to the noise of numbers of which only an upper bound is known."""


@dataclass(frozen=True, eq=False)
class Part:
    """One of the numbers that add up to the log-odds of a SubNet; a model of its own learns each.

    Attributes:
        target: the number of each SubNet, relative to the largest SubNet's, ``[n]``.
        independent: variance over draws of images that each number has beside what all SubNets have in common ``[n]``;
            a fit reads it.
        correlated: effects on each number ``[n, k]`` of k independent draws of variance 1, in which SubNets have noise
            in common; the draws are the same for all parts.
        rest: variance of each number's noise beside these draws ``[n]``.
    """

    target: FloatArray
    independent: FloatArray
    correlated: FloatArray
    rest: FloatArray


@dataclass(frozen=True, eq=False)
class Observations:
    """Log-odds of evaluated SubNets against the largest SubNet, in parts, and the variances of their noise.

    ``autotailor.prediction.evaluations.outcomes`` says how each follows from answers and losses.

    Attributes:
        space: of the SubNets.
        indices: choice indices of the SubNets ``[n, variables]``; distinct, and without the largest SubNet.
        parts: one, the log-odds themselves; or two, what a score of losses says of the log-odds, and the rest of them.
        slope: weight of the score in the first of two parts; None for one part.
        shared: variance of log-odds over draws of images that all SubNets have in common.
        level: the same of the log-odds themselves, which the largest SubNet has in common with all others.
        baseline: log-odds of the largest SubNet.
        floor: mean value that guessing has; the log-odds are those of what is above it.
        adds_up: whether the first of two parts follows from divergences, which add up over modifications.
    """

    space: Space
    indices: IntArray
    parts: tuple[Part, ...]
    slope: float | None
    shared: float
    level: float
    baseline: float
    floor: float = 0.0
    adds_up: bool = False

    @property
    def is_loose(self) -> npt.NDArray[np.bool_]:
        """Of which SubNets only an upper bound of the log-odds is known, and does not count in a fit ``[n]``."""
        return np.asarray(self.parts[0].independent >= LOOSE)

    def loosened(self, rows: npt.NDArray[np.bool_]) -> Observations:
        """These observations, in which the log-odds of some SubNets ``[n]`` do not count in a fit."""
        return self._with_noise(np.where(rows & ~self.is_loose, LOOSE, 0.0))

    def tightened(self, rows: npt.NDArray[np.bool_]) -> Observations:
        """The reverse of ``loosened``, for SubNets that a fit believes to be above their upper bounds."""
        return self._with_noise(np.where(rows & self.is_loose, -LOOSE, 0.0))

    def _with_noise(self, more: FloatArray) -> Observations:
        parts = tuple(replace(part, independent=part.independent + more) for part in self.parts)
        return replace(self, parts=parts)

    @property
    def log_odds(self) -> FloatArray:
        """Log-odds against the largest SubNet ``[n]``."""
        return np.asarray(sum(part.target for part in self.parts))

    @property
    def is_whole(self) -> npt.NDArray[np.bool_]:
        """Whether each SubNet has more than one modification ``[n]``."""
        return np.asarray((self.indices != largest(self.space).to_array()).sum(axis=1) > 1)

    def updated(self, later: Observations) -> Observations:
        """These observations with later ones, perhaps on other images, in the place of those of the same SubNets.

        The log-odds of the largest SubNet, and what all targets have in common, are those of the later images.

        Args:
            later: with the same slope.
        """
        from scipy.linalg import block_diag

        replaced = {row.tobytes() for row in later.indices}
        kept = np.array([row.tobytes() not in replaced for row in self.indices], dtype=np.bool_)
        parts = tuple(
            Part(
                np.concatenate([old.target[kept], new.target]),
                np.concatenate([old.independent[kept], new.independent]),
                block_diag(old.correlated[kept], new.correlated),  # draws on one set of images, and on another
                np.concatenate([old.rest[kept], new.rest]),
            )
            for old, new in zip(self.parts, later.parts, strict=True)
        )
        return replace(later, indices=np.concatenate([self.indices[kept], later.indices]), parts=parts)

    def drops(self, target: FloatArray | None = None) -> dict[str, FloatArray]:
        """Variable to the number of each of its choices alone, 0 for the unmodified choice (paper, eq. 2).

        Args:
            target: a number of each SubNet ``[n]``, such as that of a part; None for the log-odds.

        Raises:
            PredictionError: a single modification was not evaluated.
        """
        base = largest(self.space)
        seen = [SubNet.from_array(self.space, row) for row in self.indices]
        values = self.log_odds if target is None else target
        numbers = {base: 0.0, **dict(zip(seen, values.tolist(), strict=True))}
        drops = {}
        for variable in self.space:
            alone = [base.transform(Modification(variable.name, choice)) for choice in variable.choices]
            if missing := [c for c, subnet in zip(variable.choices, alone, strict=True) if subnet not in numbers]:
                raise PredictionError(f"{variable.name} = {missing[0]} alone was not evaluated; evaluate it first")
            drops[variable.name] = np.array([numbers[subnet] for subnet in alone])
        return drops
