"""What the latency predictor promises, and whether a validation has kept it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


NOISE_QUANTILE, NOISE_EXCUSE = 0.95, 0.03
"""Where this quantile of the noise floor exceeds this limit, the measurement is too noisy to judge a prediction."""


@dataclass(frozen=True)
class Promise:
    """A share of SubNets whose latency is predicted within a relative error.

    Attributes:
        error: the largest absolute relative error.
        share: the share of SubNets whose absolute relative error is at most ``error``.
    """

    error: float
    share: float

    @classmethod
    def from_section(cls, section: Mapping[str, Any]) -> Promise:
        """Reads the configuration's section ``validate.promise``."""
        return cls(float(section["error"]), float(section["share"]))

    def share_within(self, validation: pd.DataFrame) -> float:
        """Share of the SubNets of ``validation.csv`` that are predicted as well as promised."""
        return float((validation["relative_error"].abs() <= self.error).mean())

    def is_kept(self, validation: pd.DataFrame) -> bool:
        """Whether enough SubNets of ``validation.csv`` are predicted as well as promised."""
        return self.share_within(validation) >= self.share

    def verdict(self, validation: pd.DataFrame) -> str:
        """What was found and what was promised; where the promise is broken, also a likely cause and a remedy."""
        found = (
            f"{self.share_within(validation):.0%} of {len(validation)} SubNets are predicted within {self.error:.0%} "
            f"(promised: {self.share:.0%})"
        )
        if self.is_kept(validation):
            return found
        noise = float(validation["noise_floor"].quantile(NOISE_QUANTILE))
        said = (
            f"{found}: latencies and the front are less certain than they look. The noise floor's 95th percentile is "
        )
        if noise > NOISE_EXCUSE:
            return f"{said}{noise:.1%}: see `python -m autotailor doctor`, leave the device alone, measure again"
        return (
            f"{said}{noise:.1%}, so the predictor is at fault: profile with a lower device.precision_target, or with "
            "more device.max_minutes"
        )
