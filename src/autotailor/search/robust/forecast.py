"""What a measurement of a SubNet will say, given the latency that the LUT predicts.

The bias of the LUT and its spread come from ``robust.learning.Bias``: in the session of ``validation.csv``, the
logarithm y of the next measured latency is Student-t with n degrees of freedom around x + a' + b' (x - m), with the
variance

    s'² (1 + h) + noise² + max(0, lut_error² - usual²).

The noise is what one round of measuring is off from another. A later measurement is a round of its own, off as a whole.
The residuals of the bias hold the usual standard errors of the LUT already; a SubNet whose own is larger than ``usual``
gets the difference.

Sessions differ as a whole, by v from one to the next. The session of ``validation.csv`` has moved
a', and a later session moves what it measures, so that 2 v² is added to the variance. A SubNet that a session has
measured is known up to the v² of that session, and its next measurement differs by v² of its own. The degrees of
freedom of such sums are those of Welch and Satterthwaite.

As h is constant, the upper quantile of the measured latency is a power of the predicted one, which rises strictly. So
a budget is a limit of the predicted latency, and exact fronts stay exact.

A budget that is a share of the largest SubNet's latency has a forecast of its own (``robust.learning.of_shares``), in
which all latencies are those of sessions where the largest SubNet takes the same time. What moves a whole session is
the same for both, and cancels.

The latencies of one network differ from session to session, relative to the anchor. A session is some minutes of
measuring. Rounds within it say nothing of what all of them have in common: where memory
lies, how the caches are shared with others, how far the anchor follows a network. With t the logarithm of a network's
latency in the long run, session k finds

    y_k = t + g_k,    g_k ~ N(0, v²).

Networks of one session have much of g_k in common. So a SubNet that was measured in K sessions tells v² by its variance
over the sessions, and further SubNets make this variance less accidental, but the sessions together count as K - 1
degrees of freedom only. The configured value, from measurements of other machines, counts as ``WORTH`` degrees of
freedom (scaled inverse chi² prior):

    v² = (WORTH usual² + (K - 1) mean_s var_s) / (WORTH + K - 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.link import Link, power_law
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet
from autotailor.search.robust.distribution import Distribution, Variance, t_quantile, total

WORTH = 4.0
"""Degrees of freedom that the configured noise between sessions counts for."""

Latencies = Mapping[str, float]
"""Id of a SubNet to the latency that one session has measured, ms."""

ROUNDING = 1e-9
"""Relative error that is no more than rounding."""


@dataclass(frozen=True, eq=False)
class Sessions:
    """What is known of the sessions on a device. Without arguments, sessions do not differ.

    Attributes:
        usual: standard deviation of log latency from session to session, before anything was measured on the device.
        latencies: what each session has measured.
    """

    usual: float = 0.0
    latencies: Sequence[Latencies] = ()

    def joined(self, latencies: Latencies) -> Sessions:
        """These and one more session."""
        return Sessions(self.usual, (*self.latencies, latencies))

    @cached_property
    def variance(self) -> Variance:
        """Of log latency from session to session; exactly 0 where sessions count as alike."""
        if self.usual == 0.0:
            return Variance(0.0)
        repeated = [logs for logs in self._logs() if len(logs) > 1]
        if not repeated:
            return Variance(self.usual**2, WORTH)
        squares = math.fsum(float(np.var(logs)) * len(logs) for logs in repeated)
        measured = squares / sum(len(logs) - 1 for logs in repeated)
        degrees = max(map(len, repeated)) - 1
        return Variance((WORTH * self.usual**2 + degrees * measured) / (WORTH + degrees), WORTH + degrees)

    def _logs(self) -> list[list[float]]:
        """For each SubNet the logarithms of its latencies."""
        names = dict.fromkeys(name for session in self.latencies for name in session)
        return [[math.log(session[name]) for session in self.latencies if name in session] for name in names]


ALIKE = Sessions()
"""Sessions that do not differ."""


class Timing(Protocol):
    """The latency of a SubNet in one session, such as ``autotailor.measurement.sessions.Timed``."""

    @property
    def latency_ms(self) -> float:
        """Milliseconds."""

    @property
    def standard_error(self) -> float:
        """Standard error of the latency within the session, ms."""

    @property
    def share(self) -> float:
        """Of the largest SubNet's latency in the same rounds; NaN where that was not measured."""

    @property
    def share_error(self) -> float:
        """Standard error of the share within the session."""


@dataclass(frozen=True)
class Whole:
    """The largest SubNet.

    Attributes:
        subnet: the largest SubNet.
        predicted_ms: its latency by the LUT.
        latency_ms: the latency that it counts with, whatever a session measures.
    """

    subnet: SubNet
    predicted_ms: float
    latency_ms: float

    def restated(self, session: Mapping[str, Timing]) -> dict[str, float]:
        """Id of each other SubNet to its latency, as if the largest SubNet took ``latency_ms`` in the session.

        SubNets without a share are left out, and so is the largest SubNet, whose share never differs.
        """
        others = {name: each.share for name, each in session.items() if name != self.subnet.id}
        return {name: share * self.latency_ms for name, share in others.items() if not math.isnan(share)}


class Errors(Protocol):
    """Standard errors of predicted latencies, such as ``autotailor.ir.metrics.uncertainty.LatencyError``."""

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error ``[n]`` in ms, for choice indices ``[n, variables]``."""


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
        whole: the largest SubNet, which takes the same time in all sessions of this forecast; None where latencies are
            those that sessions have measured.
        shares: the forecast for budgets that are shares of the largest SubNet's latency; None: this one serves for
            them.
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
    whole: Whole | None = None
    shares: LatencyForecast | None = None

    def judging(self, *, shares: bool) -> LatencyForecast:
        """The forecast for a budget, which is a share of the largest SubNet's latency or is not."""
        return self.shares if shares and self.shares is not None else self

    def expected(self, predicted_ms: float) -> float:
        """The median of the measured latency, ms."""
        return predicted_ms * math.exp(self._bias(predicted_ms))

    def of(self, subnet: SubNet, predicted_ms: float) -> Distribution:
        """Of the measured latency of a SubNet."""
        return self.after(subnet, predicted_ms, ())

    def after(self, subnet: SubNet, predicted_ms: float, timings: Iterable[Timing]) -> Distribution:
        """Of another measurement, where earlier ones, each of a session of its own, have found these latencies.

        Forecast and measurements are weighted by their precisions (Normal-Normal updates of the logarithm).
        """
        if self.whole is not None and subnet == self.whole.subnet:
            return Distribution(self.whole.latency_ms)
        session = self.sessions.variance
        median, variance = self.expected(predicted_ms), self._spread(subnet, predicted_ms) ** 2 + session.value
        for latency_ms, error in self._timings(timings):
            off = error**2 + self.noise**2 + session.value
            weight = variance / (variance + off) if variance + off else 1.0
            median, variance = median ** (1 - weight) * latency_ms**weight, weight * off
        scale = total((Variance(variance + self.noise**2, self.degrees), session))
        return Distribution(median, math.sqrt(scale.value), scale.degrees)

    def after_session(self, session: Mapping[str, Timing]) -> LatencyForecast:
        """The forecast that also knows what one more session has measured, as far as it says how sessions differ.

        Args:
            session: id of each SubNet to what was measured.
        """
        latencies = {name: each.latency_ms for name, each in session.items()}
        own = latencies if self.whole is None else self.whole.restated(session)
        shares = None if self.shares is None else self.shares.after_session(session)
        return replace(self, sessions=self.sessions.joined(own), shares=shares)

    def link(self) -> Link:
        """From predicted latencies to medians of measured ones, both in ms, as ``expected`` says."""
        return power_law(math.exp(self.offset - self.slope * self.centre), 1.0 + self.slope)

    def is_met(self, outlook: Distribution, budget_ms: float) -> bool:
        """Whether a latency is within a budget with the confidence."""
        return outlook.quantile(self.confidence) <= budget_ms * (1 + ROUNDING)

    def limit(self, budget_ms: float) -> float:
        """The largest predicted latency that meets a budget with the confidence, ms.

        The largest SubNet meets a budget of its own latency, which is a share of 100 %, for certain.
        """
        session = self.sessions.variance
        fixed = Variance(self.spread**2 + session.value + self.noise**2, self.degrees)
        scale = total((fixed, session))
        above = self._bias(budget_ms) + t_quantile(self.confidence, scale.degrees) * math.sqrt(scale.value)
        limit = budget_ms * math.exp(-above / (1 + self.slope))
        if self.whole is not None and budget_ms * (1 + ROUNDING) >= self.whole.latency_ms:
            return max(limit, self.whole.predicted_ms)
        return limit

    def _timings(self, timings: Iterable[Timing]) -> list[tuple[float, float]]:
        """Latencies in ms with their relative standard errors; what says nothing of shares is left out of theirs."""
        if self.whole is None:
            return [(each.latency_ms, each.standard_error / each.latency_ms) for each in timings]
        shares = (each for each in timings if not math.isnan(each.share))
        return [(each.share * self.whole.latency_ms, each.share_error / each.share) for each in shares]

    def _bias(self, predicted_ms: float) -> float:
        return self.offset + self.slope * (math.log(predicted_ms) - self.centre)

    def _spread(self, subnet: SubNet, predicted_ms: float) -> float:
        own = 0.0 if self.errors is None else float(self.errors.predict(subnet.to_array())[0]) / predicted_ms
        return math.sqrt(self.spread**2 + max(0.0, own**2 - self.usual**2))


AS_PREDICTED = LatencyForecast()
"""What is measured is what is predicted."""
