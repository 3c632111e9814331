"""Section ``pool`` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotailor.finetuning.joint.config import continued
from autotailor.finetuning.training.config import LoopConfig
from autotailor.sections import check_integers, check_numbers, read_section
from autotailor.serving.errors import PoolError
from autotailor.serving.files.index import PRECISIONS


@dataclass(frozen=True)
class PoolConfig:
    """What a pool is made of.

    Attributes:
        name: of the file in ``conf/pool``.
        members: largest number of SubNets.
        epochs: for which the members are trained on together before they are exported; 0 leaves them the weights that
            all SubNets share.
        lr_share: learning rate of this training over ``finetune.lr``; all else is as for ``finetune``.
        slowdown: the largest slowdown of the device under load for which members are chosen; 1 is no load.
        precision: of the tensors that members share: ``fp32``, or ``fp16`` for half of the file.
        tolerance: largest difference from the SuperNet's outputs, relative to the largest logit.
        rounds: how often each member is timed on the device; 0 leaves it at the predicted latency.
        seconds: for which each member is timed in each round.
    """

    name: str = "default"
    members: int = 16
    epochs: int = 16
    lr_share: float = 0.5
    slowdown: float = 4.0
    precision: str = "fp32"
    tolerance: float = 1e-4
    rounds: int = 3
    seconds: float = 0.3

    def __post_init__(self) -> None:
        check_integers(self, {"members": 1, "epochs": 0, "rounds": 0}, "pool", PoolError)
        check_numbers(self, {"lr_share": 1e-6, "slowdown": 1.0, "tolerance": 0.0, "seconds": 0.001}, "pool", PoolError)
        if self.rounds == 1:
            raise PoolError(
                "pool.rounds is 1; one round has no standard error: take 2 or more, or 0 to measure nothing"
            )
        if str(self.precision) not in PRECISIONS:
            raise PoolError(f"pool.precision is {self.precision!r}, expected one of {', '.join(PRECISIONS)}")

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> PoolConfig:
        """Reads a section of the configuration; raises PoolError for unknown keys and values out of range."""
        return read_section(cls, section, "pool", PoolError)

    def training(self, finetune: Mapping[str, Any]) -> dict[str, Any]:
        """The section of the training of the members, from the section ``finetune`` of the SuperNet's training."""
        return continued(finetune, self.epochs, self.lr_share * finetune.get("lr", LoopConfig.lr))
