"""Errors of the package ``finetuning``."""

from autotailor.ir.errors import AutoTailorError


class TrainingError(AutoTailorError):
    """Training cannot start as configured, or cannot go on."""


class DivergenceError(TrainingError):
    """The loss of a training is no finite number any more, or has jumped further than the configuration allows.

    Attributes:
        happened: the message without the remedy, for a caller that knows another remedy.
    """

    def __init__(self, happened: str, remedy: str = "") -> None:
        super().__init__(f"{happened}; {remedy}" if remedy else happened)
        self.happened = happened
