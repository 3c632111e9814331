"""What evaluations say: log-odds and scores against the largest SubNet on the same images, and how noisy these are.

With n images, whose values (``Outcome``) add up to r for a SubNet and to b for the largest SubNet, the log-odds are

    y = log((r + 1/2) / (n - r + 1/2)) - log((b + 1/2) / (n - b + 1/2)),

and with the mean loss m of a SubNet and m0 of the largest SubNet, the score is

    c = log(m0) - log(m).

Where losses are divergences from the largest SubNet's outputs, which add up over modifications,

    c = m0 - m.

The score has less noise than the log-odds, which are nearly a linear function of it, with a slope k by least squares
over the evaluated SubNets. So the log-odds are learnt in two parts (``Observations``), y = k c + d: what the score says
of them, k c, and the rest, d = y - k c. Where all SubNets have the same score, or divergences rise with right answers,
y is learnt in one part.

``noise.py`` says what the effect of an image on each value is, from which the covariance C of SubNets' values follows.
SubNets share their images, so that one component of C, the same hard images, is common to all of them: the leading
eigenvector u of C, with its eigenvalue e. ``shared`` is e u², and ``independent`` is diag(C) - e u², what each value
has for itself.

Only the independent part enters a fit, as a diagonal. A fit that knows the common part explains the misfit of its own
terms as common noise, and moves its predictions away from all data (Peelle's pertinent puzzle). The error of a
prediction is made of the whole noise instead: the common component, which is not the same for all SubNets, and what
groups of SubNets have in common beside it. Those with the same resolution, for instance, fail at the same images. The
``CORRELATED`` largest components of the noise of all parts together are kept as effects on each value, and the variance
of each value beside these.

Guessing has a mean value c, a classifier's is about one over the number of classes. A SubNet that is no better says
nothing of how bad it is: where half of its modifications ruin a network, the other half changes nothing any more. A
model that takes such SubNets at their word concludes that modifications together cost little. So y are log-odds of what
is above c, and of a SubNet within ``NEAR`` of the range from c to the largest SubNet, or ``UNSURE`` standard errors of
c, only an upper bound of y is known, that of the end of this range (``Observations.loosened``). Where the largest
SubNet itself is no better, c counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, SubNet, largest, stack
from autotailor.ir.space.variable import Space
from autotailor.prediction.evaluations.noise import (
    by_base,
    common,
    log_odds,
    mean_loss,
    of_divergences,
    of_losses,
    of_values,
)
from autotailor.prediction.evaluations.observations import Observations, Part
from autotailor.prediction.evaluations.outcome import BoolArray, LossArray, Outcome, PredictionError

LEAST_INDEPENDENT = 0.05  # share of a value's variance that it has for itself at the least
LEAST_RANGE = 1e-6  # of scores from which a slope follows
NEAR, UNSURE = 0.1, 3.0  # see above
CORRELATED = 8  # components of noise that are kept as effects on each value


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Evaluated SubNets, image by image, on one set of images.

    Attributes:
        space: of the SubNets.
        subnets: distinct; the largest SubNet is not among them.
        values: how right each SubNet is about each image, 0 to 1, ``[n, images]``.
        losses: of each SubNet for each image, ``[n, images]``.
        reference: values ``[images]`` and losses ``[images]`` of the largest SubNet.
        groups: base image of each image, ``[images]``.
        floor: mean value that guessing has; 0 where the largest SubNet is no better.
    """

    space: Space
    subnets: tuple[SubNet, ...]
    values: FloatArray
    losses: LossArray
    reference: Outcome
    groups: npt.NDArray[np.int64]
    floor: float = 0.0

    @classmethod
    def of(
        cls,
        space: Space,
        subnets: Sequence[SubNet],
        outcomes: Mapping[str, Outcome],
        groups: npt.ArrayLike,
        chance: float = 0.0,
    ) -> Outcomes:
        """Outcomes of SubNets.

        Args:
            space: of the SubNets.
            subnets: any order, repetitions and the largest SubNet included.
            outcomes: id of a SubNet to its values and losses; holds the largest SubNet.
            groups: base image of each image ``[images]``.
            chance: mean value that guessing has (``Task.chance``).

        Raises:
            PredictionError: a SubNet or the largest one was not evaluated, or a number of images differs.
        """
        base = largest(space)
        others = [subnet for subnet in dict.fromkeys(subnets) if subnet != base]
        if missing := [subnet.id for subnet in (base, *others) if subnet.id not in outcomes]:
            raise PredictionError(f"{len(missing)} SubNets lack an evaluation, first {missing[0]}; evaluate them first")
        evaluated = [outcomes[subnet.id] for subnet in (base, *others)]
        lengths = {len(numbers) for each in evaluated for numbers in (each.values, each.losses)}
        if not others or lengths != {len(np.asarray(groups))}:
            raise PredictionError(
                f"expected SubNets besides the largest, all evaluated on {len(np.asarray(groups))} images; found "
                f"{len(others)} SubNets with {sorted(lengths)} images"
            )
        if len({each.is_divergence for each in evaluated}) > 1:
            raise PredictionError(
                "some SubNets were judged by their labels and others by the largest SubNet's outputs; evaluate all of "
                "them with one sensitivity.judge"
            )
        reference, *rest = evaluated
        values, losses = np.stack([each.values for each in rest]), np.stack([each.losses for each in rest])
        group = np.asarray(groups)
        is_guess = bool(reference.values.mean() <= chance + _unsure(chance, group))
        return cls(space, tuple(others), values, losses, reference, group, 0.0 if is_guess else chance)

    @cached_property
    def indices(self) -> IntArray:
        """Choice indices ``[n, variables]``."""
        return stack(self.subnets)

    @cached_property
    def by_id(self) -> Mapping[str, Outcome]:
        """Id of each SubNet, the largest one included, to its values and losses."""
        evaluated = zip(self.subnets, self.values, self.losses, strict=True)
        kind = self.reference.is_divergence
        others = {subnet.id: Outcome(values, losses, None, kind) for subnet, values, losses in evaluated}
        return {largest(self.space).id: self.reference, **others}

    @property
    def baseline(self) -> float:
        """Log-odds of the largest SubNet."""
        return float(log_odds(self.reference.values.sum(), len(self.reference.values), self.floor))

    @cached_property
    def target(self) -> FloatArray:
        """Log-odds y against the largest SubNet ``[n]``."""
        images = self.values.shape[1]
        total = np.maximum(self.values.sum(axis=1), self._end_of_guesses * images)
        return np.asarray(log_odds(total, images, self.floor) - self.baseline)

    @cached_property
    def is_guess(self) -> BoolArray:
        """Whether each SubNet is too near to guessing to say how bad it is ``[n]``."""
        return np.asarray(self.values.mean(axis=1) <= self._end_of_guesses) & (self.floor > 0.0)

    @property
    def _end_of_guesses(self) -> float:
        """Mean value up to which a SubNet may be guessing; 0 without a floor."""
        if self.floor == 0.0:
            return 0.0
        room = max(NEAR * (float(self.reference.values.mean()) - self.floor), _unsure(self.floor, self.groups))
        return self.floor + room

    @cached_property
    def score(self) -> FloatArray:
        """Score c against the largest SubNet ``[n]``."""
        means = mean_loss(self.reference.losses), mean_loss(self.losses)
        reference, own = means if self.reference.is_divergence else (np.log(mean) for mean in means)
        return np.asarray(reference - own)

    @cached_property
    def slope(self) -> float | None:
        """Slope k of log-odds over scores by least squares; None where all SubNets have the same score.

        SubNets that guess are left out, since scores and log-odds end at different levels.
        """
        counted = ~self.is_guess
        if not counted.any() or np.ptp(self.score[counted]) < LEAST_RANGE:
            return None
        away = self.score[counted] - self.score[counted].mean()
        slope = float(away @ self.target[counted] / (away @ away))
        return None if self.reference.is_divergence and slope <= 0.0 else slope

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance C of the log-odds over draws of base images ``[n, n]``."""
        return np.asarray(self._of_log_odds @ self._of_log_odds.T)

    @cached_property
    def shared(self) -> FloatArray:
        """Variance of each SubNet's log-odds that is common to all SubNets ``[n]``."""
        return _shared(self.covariance)

    @property
    def level(self) -> float:
        """Variance that the log-odds of all SubNets have in common, the largest one included: mean over the SubNets."""
        both = by_base(
            of_values(np.concatenate([self.reference.values[None], self.values]), self.floor, self._end_of_guesses),
            self.groups,
        )
        return float(np.mean(common(both @ both.T)))

    @property
    def independent(self) -> FloatArray:
        """Variance that each SubNet's log-odds have for themselves ``[n]``."""
        return np.asarray(np.diag(self.covariance) - self.shared)

    @property
    def beside_shift(self) -> FloatArray:
        """Variance of each SubNet's log-odds beside the shift that all of them have in common ``[n]``.

        The shift is the mean of the other SubNets' noise. A single SubNet has no shift beside its own noise.
        """
        covariance, own = self.covariance, np.diag(self.covariance)
        if (n := len(own)) == 1:
            return own
        with_others = (covariance.sum(axis=1) - own) / (n - 1)
        variance = own - 2.0 * with_others + with_others.mean()
        return np.asarray(np.maximum(variance, LEAST_INDEPENDENT * own))

    @cached_property
    def observations(self) -> Observations:
        """What a fit reads of these evaluations, with their own slope."""
        return self.observed(self.slope)

    def observed(self, slope: float | None) -> Observations:
        """What a fit reads of these evaluations.

        Args:
            slope: of log-odds over scores, by which log-odds are divided into parts; None for log-odds in one part.
        """
        shared = float(np.mean(self.shared))
        parts = self._parts(slope)
        seen = Observations(
            self.space, self.indices, parts, slope, shared, self.level, self.baseline, self.floor,
            adds_up=self.reference.is_divergence and slope is not None,
        )  # fmt: skip
        return seen.loosened(self.is_guess)

    def with_more(self, subnets: Sequence[SubNet], outcomes: Mapping[str, Outcome]) -> Outcomes:
        """These outcomes and those of further SubNets on the same images."""
        return Outcomes.of(self.space, [*self.subnets, *subnets], {**outcomes, **self.by_id}, self.groups, self.floor)

    def _parts(self, slope: float | None) -> tuple[Part, ...]:
        if slope is None:
            return (Part(self.target, self.independent, *_components(self._of_log_odds)),)
        said, effects = slope * self.score, slope * self._of_scores
        rest = self._of_log_odds - effects
        correlated, beside = _components(np.concatenate([effects, rest]))
        of_said, of_rest = zip(np.split(correlated, 2), np.split(beside, 2), strict=True)
        return (
            Part(said, _independent(effects), *of_said),
            Part(self.target - said, _independent(rest), *of_rest),
        )

    @cached_property
    def _of_log_odds(self) -> FloatArray:
        """Effects of base images on the log-odds ``[n, base images]``."""
        own, reference = (
            of_values(each, self.floor, self._end_of_guesses) for each in (self.values, self.reference.values[None])
        )
        return by_base(own - reference, self.groups)

    @cached_property
    def _of_scores(self) -> FloatArray:
        """Effects of base images on the scores ``[n, base images]``."""
        effects = of_divergences if self.reference.is_divergence else of_losses
        return by_base(effects(self.reference.losses[None]) - effects(self.losses), self.groups)


def _unsure(chance: float, groups: npt.NDArray[np.int64]) -> float:
    """How far above guessing a mean of values may be by chance; no values from 0 to 1 scatter more than 0 and 1."""
    return float(UNSURE * np.sqrt(chance * (1.0 - chance) / len(np.unique(groups))))


def _shared(covariance: FloatArray) -> FloatArray:
    """Variance that is common to all values with a covariance ``[n, n]``: ``[n]``."""
    shared = common(covariance) if len(covariance) > 1 else np.zeros(1)
    return np.asarray(np.minimum(shared, (1 - LEAST_INDEPENDENT) * np.diag(covariance)))


def _components(effects: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest components of the noise, as effects of independent draws, and the variance beside them.

    Args:
        effects: of base images on all numbers ``[n, base images]``.

    Returns:
        ``[n, CORRELATED]`` and ``[n]``.
    """
    left, sizes, _ = np.linalg.svd(effects, full_matrices=False)
    columns = left * sizes
    kept = np.zeros((len(columns), CORRELATED))
    kept[:, : len(sizes)] = columns[:, :CORRELATED]
    return kept, np.asarray(np.square(columns[:, CORRELATED:]).sum(axis=1))


def _independent(effects: FloatArray) -> FloatArray:
    """Variance that each value has for itself, from the effects of base images ``[n, base images]``: ``[n]``."""
    covariance = effects @ effects.T
    return np.asarray(np.diag(covariance) - _shared(covariance))
