"""Learns forecasts from the SubNets of ``validation.csv``, for budgets in milliseconds and for those that are shares.

The noise of a round is what the rounds of a SubNet disagree by: the median noise floor is 0.954 times it where rounds
are Gaussian. For budgets in milliseconds it holds what moves all SubNets of a round alike, which later measurements do
not share.

A share is a ratio of two latencies of one session, so that what moves both alike cancels. Its forecast is that of
y - y_0 from x - x_0, where 0 is the largest SubNet: the same line, learnt from the other SubNets, with the noise that
the rounds of these ratios show, and with sessions that differ by what these ratios differ by. The offset of the line
holds what the largest SubNet was off by in the session of ``validation.csv``, in place of its row. Beforehand, ratios
differ from session to session as much as latencies in units of the anchor do, since these are ratios of two networks,
too; the SubNets of ``validation.csv`` that a later session measures along say what is true of this device.

The bias of predicted latencies is a line over the logarithm of the prediction. With x the logarithm of the predicted
and y that of the measured latency, the measured SubNets teach

    y = x + a + b (x - m) + e,    e ~ N(0, s² / w),    b ~ N(0, s²),    s² ~ scaled inverse chi²(1, TYPICAL²),

where m is the weighted mean of x, a has a flat prior, and w = 1 / (1 + (f / (2 TYPICAL))²) makes a SubNet whose rounds
disagree by the noise floor f count for less. The bias a + b (x - m) depends on the latency, because an effect that a
sum of operators leaves out need not grow as the sum does; one prior SubNet shrinks the slope b. This is the conjugate
linear regression (Gelman et al., Bayesian Data Analysis, 3rd edition, section 14.2): with weighted residuals r, rows n
and slope b', s² has 1 + n - 1 = n degrees of freedom and the estimate

    s'² = (TYPICAL² + sum w r² + b'²) / n,

and the next SubNet's y in the same session is Student-t with n degrees of freedom around x + a' + b' (x - m), with the
variance s'² (1 + h). h is the largest leverage within the measured latencies.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from autotailor.ir.space.link import Link
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import largest
from autotailor.search.config import SearchConfig, SearchError
from autotailor.search.robust.forecast import Errors, LatencyForecast, Sessions, Whole

if TYPE_CHECKING:
    import pandas as pd

NOISE_OF_FLOOR = 1 / 0.954
"""A round's standard deviation over the median absolute difference of two rounds: 1 / (sqrt(2) 0.6745)."""
USED = ("predicted_ms", "measured_ms", "noise_floor", "lut_error")
SHARE_NOISE = "share_noise"
"""The column of what the rounds of a SubNet's share disagree by; files of earlier versions have none."""

TYPICAL = 0.025
"""Usual spread of log measured over predicted latency: 95 % of SubNets within 5 %, as ``validate.promise`` says."""
STEEPEST = 0.5
"""Largest slope of the bias, either way. Beyond it the table is wrong, and the quantile would rise too slowly."""


def read_forecast(
    path: Path, config: SearchConfig, errors: Errors | None = None, latency: Metric | None = None
) -> LatencyForecast:
    """The forecast of a device, from its ``validation.csv``.

    Args:
        path: of the file. Without rows, as where the LUT is imported, the predictor counts as unbiased, with a spread
            of ``TYPICAL``, which is that of whole networks in a session of their own.
        config: the confidence, and the usual noise between sessions.
        errors: standard errors of predictions.
        latency: predicted latencies, ms. Without them, budgets that are shares have no forecast of their own.

    Raises:
        SearchError: the file is no such table, or a latency is not above 0, or the largest SubNet is not among the
            measured ones.
    """
    import pandas as pd

    try:
        content = pd.read_csv(path)
        table = content[["subnet", *USED]].astype({"subnet": str, **dict.fromkeys(USED, np.float64)})
        table[SHARE_NOISE] = content[SHARE_NOISE].astype(np.float64) if SHARE_NOISE in content else np.nan
        in_ms = forecast(table, config.confidence, errors, config.session_noise)
        return in_ms if latency is None else replace(in_ms, shares=of_shares(table, in_ms, latency))
    except (OSError, ValueError, KeyError, SearchError) as error:
        raise SearchError(f"{path} is no table of measured SubNets ({error}); run the rule validate") from error


def read_link(path: Path) -> Link:
    """From predicted latencies to what a device is expected to take, both in ms, by its ``validation.csv``.

    Raises:
        SearchError: as ``read_forecast``.
    """
    return read_forecast(path, SearchConfig()).link()


def forecast(
    table: pd.DataFrame, confidence: float, errors: Errors | None = None, session_noise: float = 0.0
) -> LatencyForecast:
    """Of latencies in milliseconds; see ``read_forecast``; ``table`` has the columns ``subnet`` and ``USED``."""
    predicted, measured, floor, lut_error = (table[name].to_numpy(dtype=np.float64) for name in USED)
    if not len(table):
        return LatencyForecast(confidence, spread=TYPICAL, usual=TYPICAL, errors=errors)
    if not ((predicted > 0) & (measured > 0) & np.isfinite(predicted + measured + floor)).all():
        raise SearchError("expected latencies above 0 ms with their noise floor")
    usual = float(np.sqrt(np.mean(np.square(lut_error)))) if np.isfinite(lut_error).all() else TYPICAL
    noise = NOISE_OF_FLOOR * float(np.median(floor))
    sessions = Sessions(session_noise, (dict(zip(table["subnet"], measured.tolist(), strict=True)),))
    bias = asdict(learn(predicted, measured, floor))
    return LatencyForecast(confidence, **bias, noise=noise, usual=usual, errors=errors, sessions=sessions)


def expected_from_others(table: pd.DataFrame) -> list[float] | None:
    """What the other rows of ``validation.csv`` say that each SubNet is expected to take, ms.

    None below three rows, and where noise floors are missing, as in tables of before.
    """
    columns = table[list(USED[:3])].to_numpy(dtype=np.float64).T
    if len(table) < 3 or not np.isfinite(columns).all():
        return None
    biases = (learn(*np.delete(columns, row, axis=1)) for row in range(len(table)))
    return [LatencyForecast(**asdict(bias)).expected(ms) for bias, ms in zip(biases, columns[0].tolist(), strict=True)]


def of_shares(table: pd.DataFrame, in_ms: LatencyForecast, latency: Metric) -> LatencyForecast:
    """Of latencies of sessions in which the largest SubNet takes what ``in_ms`` expects of it.

    Args:
        table: as of ``forecast``, with the column ``SHARE_NOISE``. Where its values are missing, ratios count as noisy
            as latencies are.
        in_ms: the forecast in milliseconds, from the same table.
        latency: predicted latencies, ms.

    Raises:
        SearchError: SubNets were measured, and the largest is not among them.
    """
    subnet = largest(latency.space)
    predicted_ms = float(latency.predict(subnet.to_array())[0])
    whole = Whole(subnet, predicted_ms, in_ms.expected(predicted_ms))
    if not len(table):
        return replace(in_ms, whole=whole)
    is_whole = table["subnet"] == subnet.id
    if not is_whole.any():
        raise SearchError("expected the largest SubNet among the measured ones")
    first, others = table[is_whole].iloc[0], table[~is_whole]
    if others.empty:
        return replace(in_ms, offset=0.0, slope=0.0, spread=TYPICAL, degrees=1.0, whole=whole)
    restated = others["measured_ms"].to_numpy() * (whole.latency_ms / first["measured_ms"])
    rounds = others[SHARE_NOISE].to_numpy(dtype=np.float64)
    is_known = bool(np.isfinite(rounds).all())
    noise = math.sqrt(float(np.mean(rounds**2))) if is_known else in_ms.noise
    disagreement = rounds / NOISE_OF_FLOOR if is_known else others["noise_floor"].to_numpy()
    bias = asdict(learn(others["predicted_ms"].to_numpy(), restated, disagreement))
    sessions = Sessions(in_ms.sessions.usual, (dict(zip(others["subnet"], restated.tolist(), strict=True)),))
    return replace(in_ms, **bias, noise=noise, sessions=sessions, whole=whole)


@dataclass(frozen=True)
class Bias:
    """What predicted latencies are off by, as a logarithm.

    Attributes:
        offset: mean of log measured over predicted latency at ``centre``.
        slope: what the bias grows by where the latency grows by the factor e.
        centre: logarithm of a latency in ms.
        spread: standard deviation of log measured over predicted latency around the bias, leverage included.
        degrees: of freedom.
    """

    offset: float
    slope: float
    centre: float
    spread: float
    degrees: float


def learn(predicted: FloatArray, measured: FloatArray, disagreement: FloatArray) -> Bias:
    """The bias that SubNets teach.

    Args:
        predicted: latencies ``[n]`` in ms, one at least.
        measured: latencies ``[n]`` in ms.
        disagreement: what two rounds of each SubNet are relatively off from each other, ``[n]``.
    """
    weight = 1 / (1 + (disagreement / (2 * TYPICAL)) ** 2)
    logs, ratios = np.log(predicted), np.log(measured / predicted)
    centre, offset = (float(np.average(values, weights=weight)) for values in (logs, ratios))
    away = logs - centre
    precision = float(weight @ away**2) + 1.0
    slope = float(np.clip(weight @ (away * ratios) / precision, -STEEPEST, STEEPEST))
    residual = ratios - offset - slope * away
    variance = (TYPICAL**2 + float(weight @ residual**2) + slope**2) / len(predicted)
    leverage = 1 / float(weight.sum()) + float(np.max(away**2)) / precision
    return Bias(offset, slope, centre, math.sqrt(variance * (1 + leverage)), float(len(predicted)))
