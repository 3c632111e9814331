"""Section ``pool`` of the configuration."""

from collections.abc import Mapping
from typing import Annotated, Any

from autotailor.finetuning.joint.config import continued
from autotailor.finetuning.training.config import LoopConfig
from autotailor.sections import Section
from autotailor.serving.errors import PoolError
from autotailor.serving.files.index import PRECISIONS
from autotailor.values import AboveZero, Bound, Natural, NotNegative, OneOf, Positive, UnfitError


class PoolConfig(Section, of="pool", error=PoolError):
    """What a pool is made of.

    Attributes:
        name: name of the file in ``conf/pool``, for people.
        members: SubNets of the front in the pool at most. They are those that lose least expected accuracy.
        epochs: for which the members train on together before they are exported, with weights that they share. With 0
            they keep the weights that all SubNets share.
        lr_share: learning rate of this training over ``finetune.lr``. All else is as in ``finetune``.
        slowdown: members are chosen for slowdowns of the device under load from 1 to this one, all equally likely.
        precision: of the tensors that members share. ``fp16`` halves the file, and outputs differ in the third digit.
        tolerance: largest difference between a member's outputs and the SuperNet's, relative to the largest logit.
        rounds: how often each member is timed on the device. The standard error is that of the mean of the rounds. With
            0, latencies are those that the LUT predicts.
        seconds: seconds for which each member is timed in each round.
    """

    name: str = "default"
    members: Positive = 16
    epochs: Natural = 16
    lr_share: AboveZero = 0.5
    slowdown: Annotated[float, Bound(ge=1)] = 4.0
    precision: Annotated[str, OneOf(*PRECISIONS)] = "fp32"
    tolerance: NotNegative = 1e-4
    rounds: Natural = 3
    seconds: AboveZero = 0.3

    def __post_init__(self) -> None:
        if self.rounds == 1:
            raise UnfitError("rounds", "1 round has no standard error: take 2 or more, or 0 to measure nothing")

    def training(self, finetune: Mapping[str, Any]) -> dict[str, Any]:
        """The section of the training of the members, from the section ``finetune`` of the SuperNet's training."""
        return continued(finetune, self.epochs, self.lr_share * finetune.get("lr", LoopConfig.lr))
