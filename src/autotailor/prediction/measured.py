"""The accuracy of one SubNet: as measured, and as all that is known of it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autotailor.prediction.evaluations.chance import uncontradicted


@dataclass(frozen=True)
class Measured:
    """The accuracy of a SubNet on the validation set, in percent and points.

    The most accurate of several SubNets by measurement is also the luckiest one. The mean of the posterior weighs the
    measurement against what is predicted from other SubNets, so that luck counts for less.

    Attributes:
        accuracy: the measurement.
        standard_error: of the measurement, for all images like these.
        posterior: mean of the posterior, which includes the measurement.
        posterior_error: standard error of the posterior, as the accuracy on these images; that of the largest SubNet,
            to which all others are compared, is the error of its measurement.
    """

    accuracy: float
    standard_error: float
    posterior: float
    posterior_error: float

    @classmethod
    def alone(cls, accuracy: float, standard_error: float) -> Measured:
        """A measurement beside which nothing is known."""
        return cls(accuracy, standard_error, accuracy, standard_error)


def reconciled(accuracies: Mapping[str, Measured]) -> dict[str, Measured]:
    """Posteriors that the measurements do not contradict, where the answers to single images are not at hand.

    Errors of measurements then count as independent, so that differences count as less certain than they are.

    Args:
        accuracies: id of each SubNet to its accuracy.
    """
    if not accuracies:
        return {}
    posterior, measured, own = (
        np.array([getattr(each, name) for each in accuracies.values()])
        for name in ("posterior", "accuracy", "standard_error")
    )
    values = uncontradicted(posterior, measured, np.hypot(own[:, None], own[None])).tolist()
    return {id_: replace(each, posterior=value) for (id_, each), value in zip(accuracies.items(), values, strict=True)}
