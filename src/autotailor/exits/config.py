"""The section ``model.space.exits``."""

from __future__ import annotations

from typing import Annotated

from autotailor.exits.answers import CONFIDENCES, ExitError
from autotailor.exits.guarantee import Guarantee
from autotailor.exits.thresholds import MOST_EXITS
from autotailor.sections import Section
from autotailor.values import AboveZero, Bound, Natural, OneOf, UnfitError

PROBE, FULL = "probe", "full"
KINDS = (PROBE, FULL)


class ExitsConfig(Section, of="model.space.exits", error=ExitError, kw_only=True):
    """Early exits of the exported SubNets of a classifier. Left out, there are none.

    Attributes:
        after: the stages or blocks behind which an exit stands, at most four (``[stage2, stage3]``). An exit that is no
            more accurate than an earlier one is dropped.
        head: ``probe`` pools and has a linear map, ``full`` has a 3x3 convolution with stride 2 before.
        images: training pictures that heads see; the network itself stays as it is. With 0 they are only solved.
        lr: highest learning rate of heads.
        confidence: how sure an exit is: its largest ``probability``, or the ``margin`` to the second one.
        epsilon, delta: the report names the cheapest thresholds that lose at most a share ``epsilon`` of right answers
            against the last exit with probability 1 - ``delta``, on pictures like those of the validation set.
    """

    after: tuple[str, ...]
    head: Annotated[str, OneOf(*KINDS)] = PROBE
    images: Natural = 12000
    lr: AboveZero = 2e-3
    confidence: Annotated[str, OneOf(*CONFIDENCES)] = CONFIDENCES[0]
    epsilon: Annotated[float, Bound(gt=0, lt=1, expected="a share above 0 and below 1")] = 0.01
    delta: Annotated[float, Bound(gt=0, lt=1, expected="a probability above 0 and below 1")] = 0.05

    def __post_init__(self) -> None:
        if not 1 <= len(set(self.after)) == len(self.after) <= MOST_EXITS:
            raise UnfitError(
                "after", f"expected one to {MOST_EXITS} different stages or blocks, not {list(self.after)}"
            )

    @property
    def guarantee(self) -> Guarantee:
        """Epsilon and delta."""
        return Guarantee(self.epsilon, self.delta)
