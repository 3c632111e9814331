"""The accuracy of one SubNet: as measured, and as all that is known of it says."""

from __future__ import annotations

from dataclasses import dataclass


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
