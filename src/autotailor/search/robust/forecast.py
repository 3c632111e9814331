"""What a measurement of a SubNet will say, given the latency that the LUT predicts.

With x the logarithm of the predicted and y that of the measured latency, the SubNets of ``validation.csv`` teach

    y = x + a + b (x - m) + e,    e ~ N(0, s² / w),    b ~ N(0, s²),    s² ~ scaled inverse chi²(1, TYPICAL²),

where m is the weighted mean of x, a has a flat prior, and w = 1 / (1 + (f / (2 TYPICAL))²) makes a SubNet whose rounds
disagree by the noise floor f count for less. The predictor's bias a + b (x - m) depends on the latency, because an
effect that a sum of operators leaves out need not grow as the sum does; one prior SubNet shrinks the slope b. This is
the conjugate linear regression (Gelman et al., Bayesian Data Analysis, 3rd edition, section 14.2): with weighted
residuals r, rows n and slope b', s² has 1 + n - 1 = n degrees of freedom and the estimate

    s'² = (TYPICAL² + sum w r² + b'²) / n,

and the next SubNet's y in the session of ``validation.csv`` is Student-t with n degrees of freedom around
x + a' + b' (x - m), with the variance

    s'² (1 + h) + noise² + max(0, lut_error² - usual²).

h is the largest leverage within the validated latencies. The noise is what one round of measuring is off from another:
the median noise floor is 0.954 times it where rounds are Gaussian. A later measurement is a round of its own, off as a
whole. The residuals hold the usual standard errors of the LUT already; a SubNet whose own is larger than ``usual``
gets the difference.

Sessions differ as a whole, by v from one to the next (``robust.sessions``). The session of ``validation.csv`` has moved
a', and a later session moves what it measures, so that 2 v² is added to the variance. A SubNet that a session has
measured is known up to the v² of that session, and its next measurement differs by v² of its own. The degrees of
freedom of such sums are those of Welch and Satterthwaite.

As h is constant, the upper quantile of the measured latency is a power of the predicted one, which rises strictly. So
a budget is a limit of the predicted latency, and exact fronts stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet
from autotailor.search.config import SearchConfig
from autotailor.search.errors import SearchError
from autotailor.search.robust.distribution import Distribution, Variance, t_quantile, total
from autotailor.search.robust.sessions import ALIKE, Latencies, Sessions

if TYPE_CHECKING:
    import pandas as pd

TYPICAL = 0.025
"""Usual spread of log measured over predicted latency: 95 % of SubNets within 5 %, as ``validate.promise`` says."""
STEEPEST = 0.5
"""Largest slope of the bias, either way. Beyond it the table is wrong, and the quantile would rise too slowly."""
NOISE_OF_FLOOR = 1 / 0.954
"""A round's standard deviation over the median absolute difference of two rounds: 1 / (sqrt(2) 0.6745)."""
ROUNDING = 1e-9
"""Relative error that is no more than rounding."""
USED = ("predicted_ms", "measured_ms", "noise_floor", "lut_error")


class Errors(Protocol):
    """Standard errors of predicted latencies, such as ``autotailor.ir.metrics.uncertainty.LatencyError``."""

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error ``[n]`` in ms, for choice indices ``[n, variables]``."""


class Timing(Protocol):
    """The latency of a whole network in one session, such as ``autotailor.profiling.Measurement``."""

    @property
    def latency_ms(self) -> float:
        """Milliseconds."""

    @property
    def standard_error(self) -> float:
        """Standard error of the latency within the session, ms."""


@dataclass(frozen=True, eq=False)
class LatencyForecast:
    """Of measured latencies, from predicted ones. Without arguments, predictions are what will be measured.

    Attributes:
        confidence: the probability with which a SubNet is to meet its budget.
        offset: bias of the predictor: mean of log measured over predicted latency at ``centre``.
        slope: what the bias grows by where the latency grows by the factor e.
        centre: logarithm of a latency in ms.
        spread: standard deviation of log measured over predicted latency around the bias, leverage included.
        noise: standard deviation of the logarithm of a measurement around the true latency.
        usual: relative standard error of the LUT that the spread holds.
        degrees: of freedom.
        errors: standard errors of predictions; None where they are not known.
        sessions: how far latencies differ from session to session.
    """

    confidence: float = 0.5
    offset: float = 0.0
    slope: float = 0.0
    centre: float = 0.0
    spread: float = 0.0
    noise: float = 0.0
    usual: float = 0.0
    degrees: float = math.inf
    errors: Errors | None = None
    sessions: Sessions = ALIKE

    def expected(self, predicted_ms: float) -> float:
        """The median of the measured latency, ms."""
        return predicted_ms * math.exp(self._bias(predicted_ms))

    def of(self, subnet: SubNet, predicted_ms: float) -> Distribution:
        """Of the measured latency of a SubNet."""
        return self.after(subnet, predicted_ms, ())

    def after(self, subnet: SubNet, predicted_ms: float, found: Iterable[Timing]) -> Distribution:
        """Of another measurement, where earlier ones, each of a session of its own, have found these latencies.

        Forecast and measurements are weighted by their precisions (Normal-Normal updates of the logarithm).
        """
        session = self.sessions.variance
        median, known = self.expected(predicted_ms), self._spread(subnet, predicted_ms) ** 2 + session.value
        for each in found:
            off = (each.standard_error / each.latency_ms) ** 2 + self.noise**2 + session.value
            weight = known / (known + off) if known + off else 1.0
            median, known = median ** (1 - weight) * each.latency_ms**weight, weight * off
        scale = total((Variance(known + self.noise**2, self.degrees), session))
        return Distribution(median, math.sqrt(scale.value), scale.degrees)

    def after_session(self, latencies: Latencies) -> LatencyForecast:
        """The forecast that also knows what one more session has measured, as far as it says how sessions differ."""
        return replace(self, sessions=self.sessions.joined(latencies))

    def is_met(self, outlook: Distribution, budget_ms: float) -> bool:
        """Whether a latency is within a budget with the confidence."""
        return outlook.quantile(self.confidence) <= budget_ms * (1 + ROUNDING)

    def limit(self, budget_ms: float) -> float:
        """The largest predicted latency that meets a budget with the confidence, ms."""
        session = self.sessions.variance
        known = Variance(self.spread**2 + session.value + self.noise**2, self.degrees)
        scale = total((known, session))
        above = self._bias(budget_ms) + t_quantile(self.confidence, scale.degrees) * math.sqrt(scale.value)
        return budget_ms * math.exp(-above / (1 + self.slope))

    def _bias(self, predicted_ms: float) -> float:
        return self.offset + self.slope * (math.log(predicted_ms) - self.centre)

    def _spread(self, subnet: SubNet, predicted_ms: float) -> float:
        own = 0.0 if self.errors is None else float(self.errors.predict(subnet.to_array())[0]) / predicted_ms
        return math.sqrt(self.spread**2 + max(0.0, own**2 - self.usual**2))


AS_PREDICTED = LatencyForecast()
"""What is measured is what is predicted."""


def read_forecast(path: Path, config: SearchConfig, errors: Errors | None = None) -> LatencyForecast:
    """The forecast of a device, from its ``validation.csv``.

    Args:
        path: of the file. Without rows, as where the LUT is imported, the predictor counts as unbiased, with a spread
            of ``TYPICAL``, which is that of whole networks in a session of their own.
        config: the confidence, and the usual noise between sessions.
        errors: standard errors of predictions.

    Raises:
        SearchError: the file is no such table, or a latency is not above 0.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path)[["subnet", *USED]].astype({"subnet": str, **dict.fromkeys(USED, np.float64)})
        return forecast(table, config.confidence, errors, config.session_noise)
    except (OSError, ValueError, KeyError, SearchError) as error:
        raise SearchError(f"{path} is no table of measured SubNets ({error}); run the rule validate") from error


def forecast(
    table: pd.DataFrame, confidence: float, errors: Errors | None = None, session_noise: float = 0.0
) -> LatencyForecast:
    """See ``read_forecast``; ``table`` has the columns ``subnet`` and ``USED``."""
    predicted, measured, floor, lut_error = (table[name].to_numpy(dtype=np.float64) for name in USED)
    if not len(table):
        return LatencyForecast(confidence, spread=TYPICAL, usual=TYPICAL, errors=errors)
    if not ((predicted > 0) & (measured > 0) & np.isfinite(predicted + measured + floor)).all():
        raise SearchError("expected latencies above 0 ms with their noise floor")
    weight = 1 / (1 + (floor / (2 * TYPICAL)) ** 2)
    logs, found = np.log(predicted), np.log(measured / predicted)
    centre, offset = (float(np.average(values, weights=weight)) for values in (logs, found))
    away = logs - centre
    precision = float(weight @ away**2) + 1.0
    slope = float(np.clip(weight @ (away * found) / precision, -STEEPEST, STEEPEST))
    residual = found - offset - slope * away
    variance = (TYPICAL**2 + float(weight @ residual**2) + slope**2) / len(table)
    leverage = 1 / float(weight.sum()) + float(np.max(away**2)) / precision
    usual = float(np.sqrt(np.mean(np.square(lut_error)))) if np.isfinite(lut_error).all() else TYPICAL
    noise = NOISE_OF_FLOOR * float(np.median(floor))
    spread = math.sqrt(variance * (1 + leverage))
    sessions = Sessions(session_noise, (dict(zip(table["subnet"], measured.tolist(), strict=True)),))
    degrees = float(len(table))
    return LatencyForecast(confidence, offset, slope, centre, spread, noise, usual, degrees, errors, sessions)
