"""Other divisions of the same base images into a validation and a test set of the same sizes.

Training has seen neither set, so that any division of their base images could have been the one at hand. Over many of
them, the luck of a single test set cancels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.subnet import SubNet
from autotailor.prediction import Outcome, Outcomes
from evaluated.network import Network


@dataclass(frozen=True, eq=False)
class Division:
    """One division of base images, given as base images of the validation set."""

    validation: npt.NDArray[np.int64]

    def learnt(self, both: Outcomes) -> Outcomes:
        """The outcomes on the validation set."""
        return _on(both, np.isin(both.groups, self.validation))

    def judged(self, both: Outcomes) -> Outcomes:
        """The outcomes on the test set."""
        return _on(both, ~np.isin(both.groups, self.validation))


def on_both(network: Network, subnets: Sequence[SubNet]) -> Outcomes:
    """SubNets as evaluated on both sets, one after the other; base images of different sets differ in their numbers."""
    one, other = network.outcomes(subnets), network.test_outcomes(subnets)
    numbers = [np.unique(outcomes.groups, return_inverse=True)[1] for outcomes in (one, other)]
    return replace(
        one,
        values=np.concatenate([one.values, other.values], axis=1),
        losses=np.concatenate([one.losses, other.losses], axis=1),
        reference=Outcome(
            np.concatenate([one.reference.values, other.reference.values]),
            np.concatenate([one.reference.losses, other.reference.losses]),
        ),
        groups=np.concatenate([numbers[0], numbers[1] + numbers[0].max() + 1]),
    )


def divisions(network: Network, count: int, learnt: int = 0) -> Iterator[Division]:
    """Random divisions of the base images, with ``learnt`` in the validation set; 0: as many as it has."""
    sizes = [len(np.unique(split.groups)) for split in (network.data.validation, network.data.test)]
    random = np.random.default_rng(0)
    for _ in range(count):
        yield Division(random.permutation(sum(sizes))[: learnt or sizes[0]])


def _on(both: Outcomes, kept: npt.NDArray[np.bool_]) -> Outcomes:
    reference = Outcome(both.reference.values[kept], both.reference.losses[kept])
    return replace(
        both, values=both.values[:, kept], losses=both.losses[:, kept], reference=reference, groups=both.groups[kept]
    )
