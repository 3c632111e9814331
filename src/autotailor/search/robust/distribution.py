"""What is known of one latency, and how independent errors add up."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Distribution:
    """Of one latency: its logarithm is Student-t.

    Attributes:
        median_ms: the median, ms.
        scale: of the logarithm.
        degrees: of freedom.
    """

    median_ms: float
    scale: float = 0.0
    degrees: float = math.inf

    def quantile(self, share: float) -> float:
        """The latency that is exceeded with probability 1 - ``share``, ms."""
        return self.median_ms * math.exp(t_quantile(share, self.degrees) * self.scale)

    def probability(self, budget_ms: float) -> float:
        """Probability that the latency is at most ``budget_ms``."""
        from scipy import stats

        if self.scale == 0.0:
            return float(self.median_ms <= budget_ms)
        return float(stats.t.cdf(math.log(budget_ms / self.median_ms) / self.scale, self.degrees))

    def percent(self, budget_ms: float) -> float:
        """``probability`` in percent, rounded down to a tenth, so that what is below a confidence never reads as it."""
        return math.floor(1000 * self.probability(budget_ms)) / 10


@dataclass(frozen=True)
class Variance:
    """An estimated variance.

    Attributes:
        value: the estimate.
        degrees: of freedom of the estimate.
    """

    value: float
    degrees: float = math.inf


def total(variances: Iterable[Variance]) -> Variance:
    """Variance of a sum of independent errors, with the degrees of freedom of Welch and Satterthwaite."""
    parts = [part for part in variances if part.value > 0.0]
    value = math.fsum(part.value for part in parts)
    unsure = math.fsum(part.value**2 / part.degrees for part in parts)
    return Variance(value, value**2 / unsure if unsure else math.inf)


def t_quantile(share: float, degrees: float) -> float:
    """Quantile of Student's t."""
    from scipy import stats

    return float(stats.t.ppf(share, degrees))
