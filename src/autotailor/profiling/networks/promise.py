"""What the latency predictor promises, and whether a validation has kept it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from autotailor.profiling.errors import ProfilingError
from autotailor.sections import Section
from autotailor.values import AboveZero, Share

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

NOISE_QUANTILE, NOISE_EXCUSE = 0.95, 0.03
"""Where this quantile of the noise floor exceeds this limit, the measurement is too noisy to judge a prediction."""

STRAY = 0.2
"""Relative distance of the anchor from the LUT's beyond which a single SubNet's measurement says little.

It is the default of ``device.drift``, beyond which a measurement is repeated and the run warns."""


class Promise(Section, of="validate.promise", error=ProfilingError):
    """A share of SubNets whose latency is predicted within a relative error.

    Attributes:
        error: relative error of a predicted latency.
        share: part of the SubNets that must be predicted within ``error``.
    """

    error: AboveZero
    share: Share

    def share_within(self, validation: pd.DataFrame) -> float:
        """Share of the SubNets of ``validation.csv`` that are predicted as well as promised."""
        return float((validation["relative_error"].abs() <= self.error).mean())

    def is_kept(self, validation: pd.DataFrame) -> bool:
        """Whether enough SubNets of ``validation.csv`` are predicted as well as promised."""
        return self.share_within(validation) >= self.share

    def verdict(self, validation: pd.DataFrame) -> str:
        """What was found and what was promised; where the promise is broken, also a likely cause and a remedy."""
        outcome = (
            f"{self.share_within(validation):.0%} of {len(validation)} SubNets are predicted within {self.error:.0%} "
            f"(promised: {self.share:.0%})"
        )
        if self.is_kept(validation):
            return outcome
        said = f"{outcome}: latencies and the front are less certain than they look. "
        if self.unrest(validation):
            return f"{said}{self.cause(validation)}. See `python -m autotailor doctor`, and measure again"
        return (
            f"{said}{self.cause(validation)}: profile with a lower device.precision_target, or with more "
            "device.min_minutes"
        )

    def cause(self, validation: pd.DataFrame) -> str:
        """What a broken promise is due to: the machine or the predictor."""
        if unrest := self.unrest(validation):
            return f"The machine may be the cause: {unrest}"
        return "The predictor is the cause, because the machine was quiet, and as fast as it was for the LUT"

    def unrest(self, validation: pd.DataFrame) -> str:
        """Why the machine was too restless to judge a prediction; an empty text where the machine was quiet.

        Three signs tell. Rounds that differ say that something else runs there. An anchor that is slower or faster than
        in the LUT, by more than the promised error, says that the machine has changed since; networks and their
        operators do not all slow down by the anchor's factor. An anchor that was far off (``STRAY``) for more SubNets
        than the promise leaves out says that the machine was restless part of the time.
        """
        noise = float(validation["noise_floor"].quantile(NOISE_QUANTILE))
        pace = drift(validation)
        signs = []
        if noise > NOISE_EXCUSE:
            signs.append(f"the noise floor's 95th percentile is {noise:.1%}, above {NOISE_EXCUSE:.0%}")
        if abs(pace) > self.error:
            direction = "slower" if pace > 0 else "faster"
            signs.append(
                f"the anchor is {abs(pace):.1%} {direction} than when the operators were measured (the SubNets follow "
                f"it by {validation['follows'].median():.0%}, as far as the rounds tell; without correction "
                f"{self._share_raw(validation):.0%} are within {self.error:.0%})"
            )
        elif (strayed := int((validation["anchor_drift"].abs() > STRAY).sum())) > (1 - self.share) * len(validation):
            signs.append(
                f"the anchor was off by more than {STRAY:.0%} from the LUT's for {strayed} of {len(validation)} SubNets"
            )
        return ", and ".join(signs)

    def _share_raw(self, validation: pd.DataFrame) -> float:
        """Share of the SubNets that would be predicted as well as promised without the anchor's correction."""
        return float((validation["raw_error"].abs() <= self.error).mean())


def drift(validation: pd.DataFrame) -> float:
    """How much slower the anchor was than in the LUT while SubNets were measured, relative; below 0: faster."""
    return float(validation["anchor_drift"].median())


def measured_in_quiet(measure: Callable[[int], pd.DataFrame], promise: Promise, attempts: int) -> pd.DataFrame:
    """Measures SubNets, and again where the promise is broken while the machine was restless.

    The errors of the predictions have no say in which table counts, because the smallest of several errors flatters the
    predictor. The table with the lowest noise floor and drift counts.

    Args:
        measure: takes the number of the attempt, measures the SubNets, and returns the table of ``validate``.
        promise: of the latency predictor.
        attempts: how often the SubNets are measured at most.

    Returns:
        The table of the quietest attempt.
    """
    tables: list[pd.DataFrame] = []
    for attempt in range(1, attempts + 1):
        table = measure(attempt)
        tables.append(table)
        unrest = promise.unrest(table)
        if not unrest or (promise.is_kept(table) and len(tables) == 1):
            return table
        if attempt < attempts:
            logger.warning(
                "the promise of the latency predictor cannot be judged, because %s: measuring again; let nothing else "
                "run on the device",
                unrest,
            )
    return min(tables, key=lambda table: table["noise_floor"].quantile(NOISE_QUANTILE) + abs(drift(table)))
