"""What evaluations say: log-odds against the largest SubNet on the same images, and how noisy these are.

With n images, r of them right for a SubNet and b of them right for the largest SubNet, the target is

    y = log((r + 1/2) / (n - r + 1/2)) - log((b + 1/2) / (n - b + 1/2)).

To first order (delta method), image i adds z_i / n to the error of y, where p is the SubNet's share of right answers, q
that of the largest SubNet, and

    z_i = (right_i - p) / (p (1 - p)) - (right of the largest_i - q) / (q (1 - q)).

Copies of one base image are summed up first, since base images are the independent draws. The covariance C of two
SubNets' targets is that of their sums. SubNets share their images, so that one component of C, the same hard images, is
common to all of them: the leading eigenvector u of C, with its eigenvalue e. ``shared`` is e u², and ``independent`` is
diag(C) - e u², what each target has for itself.

Only the independent part enters a fit, as a diagonal. A fit that knows the common part explains the misfit of its own
terms as common noise, and moves its predictions away from all data (Peelle's pertinent puzzle). The common part is
added to the error of predictions for other images instead.
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
from autotailor.prediction.errors import PredictionError
from autotailor.prediction.observations import Observations

BoolArray = npt.NDArray[np.bool_]

LEAST_INDEPENDENT = 0.05  # share of a target's variance that it has for itself at the least


def log_odds(right: npt.ArrayLike, images: int) -> FloatArray:
    """Log-odds of a right answer from numbers of right answers, with half an image added to either side."""
    r = np.asarray(right, dtype=np.float64)
    return np.asarray(np.log(r + 0.5) - np.log(images - r + 0.5), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Evaluated SubNets, image by image, on one set of images.

    Attributes:
        space: of the SubNets.
        subnets: distinct; the largest SubNet is not among them.
        right: whether each SubNet is right about each image, ``[n, images]``.
        reference: the same for the largest SubNet, ``[images]``.
        groups: base image of each image, ``[images]``.
    """

    space: Space
    subnets: tuple[SubNet, ...]
    right: BoolArray
    reference: BoolArray
    groups: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, space: Space, subnets: Sequence[SubNet], right: Mapping[str, BoolArray], groups: npt.ArrayLike
    ) -> Outcomes:
        """Outcomes of SubNets.

        Args:
            space: of the SubNets.
            subnets: any order, repetitions and the largest SubNet included.
            right: id of a SubNet to its right answers ``[images]``; holds the largest SubNet.
            groups: base image of each image ``[images]``.

        Raises:
            PredictionError: a SubNet or the largest one was not evaluated, or a number of images differs.
        """
        base = largest(space)
        others = [subnet for subnet in dict.fromkeys(subnets) if subnet != base]
        lengths = {len(right[subnet.id]) for subnet in (base, *others) if subnet.id in right}
        if missing := [subnet.id for subnet in (base, *others) if subnet.id not in right]:
            raise PredictionError(f"{len(missing)} SubNets lack an evaluation, first {missing[0]}; evaluate them first")
        if not others or lengths != {len(np.asarray(groups))}:
            raise PredictionError(
                f"expected SubNets besides the largest, all evaluated on {len(np.asarray(groups))} images; found "
                f"{len(others)} SubNets with {sorted(lengths)} images"
            )
        rows = np.stack([np.asarray(right[subnet.id], dtype=np.bool_) for subnet in others])
        return cls(space, tuple(others), rows, np.asarray(right[base.id], dtype=np.bool_), np.asarray(groups))

    @cached_property
    def indices(self) -> IntArray:
        """Choice indices ``[n, variables]``."""
        return stack(self.subnets)

    @property
    def baseline(self) -> float:
        """Log-odds of the largest SubNet."""
        return float(log_odds(self.reference.sum(), len(self.reference)))

    @cached_property
    def target(self) -> FloatArray:
        """Log-odds against the largest SubNet ``[n]``."""
        return np.asarray(log_odds(self.right.sum(axis=1), self.right.shape[1]) - self.baseline)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance C of the targets over draws of base images ``[n, n]``."""
        return _covariance(_influence(self.right) - _influence(self.reference[None]), self.groups)

    @cached_property
    def shared(self) -> FloatArray:
        """Variance of each target that is common to all SubNets ``[n]``."""
        common = _common(self.covariance) if len(self.subnets) > 1 else np.zeros(1)
        return np.asarray(np.minimum(common, (1 - LEAST_INDEPENDENT) * np.diag(self.covariance)))

    @property
    def level(self) -> float:
        """Variance that the log-odds of all SubNets have in common, the largest one included: mean over the SubNets."""
        both = np.concatenate([self.reference[None], self.right])
        return float(np.mean(_common(_covariance(_influence(both), self.groups))))

    @property
    def independent(self) -> FloatArray:
        """Variance that each target has for itself ``[n]``."""
        return np.asarray(np.diag(self.covariance) - self.shared)

    @cached_property
    def observations(self) -> Observations:
        """What a fit reads of these evaluations."""
        return Observations(
            self.space,
            self.indices,
            self.target,
            self.independent,
            float(np.mean(self.shared)),
            self.level,
            self.baseline,
        )

    def with_more(self, subnets: Sequence[SubNet], right: Mapping[str, BoolArray]) -> Outcomes:
        """These outcomes and those of further SubNets on the same images."""
        known = {subnet.id: row for subnet, row in zip(self.subnets, self.right, strict=True)}
        known[largest(self.space).id] = self.reference
        return Outcomes.of(self.space, [*self.subnets, *subnets], {**right, **known}, self.groups)


def _influence(right: BoolArray) -> FloatArray:
    """First-order effect of each image on the log-odds ``[n, images]``, up to the number of images."""
    values = right.astype(np.float64)
    share = (values.sum(axis=1, keepdims=True) + 0.5) / (values.shape[1] + 1)
    return np.asarray((values - values.mean(axis=1, keepdims=True)) / (share * (1 - share)))


def _covariance(z: FloatArray, groups: npt.NDArray[np.int64]) -> FloatArray:
    """Covariance over draws of base images of what the effects of images ``[n, images]`` add up to: ``[n, n]``."""
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max()) + 1
    if count < 2:
        raise PredictionError("a single base image says nothing about noise; evaluate on more images")
    sums = np.stack([np.bincount(group, weights=row, minlength=count) for row in z])
    return np.asarray(sums @ sums.T * (count / (count - 1) / z.shape[1] ** 2))


def _common(covariance: FloatArray) -> FloatArray:
    """The part of each variance that belongs to the leading component of a covariance ``[n, n]``: ``[n]``."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(values[-1] * vectors[:, -1] ** 2)
