"""Links: strictly rising functions from the sum of a metric's terms to the metric's values.

A link that rises strictly leaves the order of SubNets as it is. Therefore a search works on the sum of terms, and its
fronts and bounds hold for the values as well.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """A strictly rising function and its inverse.

    Attributes:
        name: of the link; equal names are equal links.
        value: from the sum of terms ``[n]`` to values of the metric ``[n]``, in the metric's unit.
        linear: the inverse.
        ends: values between which the inverse is finite; what is outside, no SubNet has.
    """

    name: str
    value: Callable[[FloatArray], FloatArray]
    linear: Callable[[FloatArray], FloatArray]
    ends: tuple[float, float] = (-math.inf, math.inf)


def _same(values: FloatArray) -> FloatArray:
    return values


def _percent(linear: FloatArray) -> FloatArray:
    return np.asarray(100.0 * np.exp(-np.logaddexp(0.0, -linear)), dtype=np.float64)


def _log_odds(percent: FloatArray) -> FloatArray:
    share = np.asarray(percent, dtype=np.float64) / 100.0
    return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)


FAR = 30.0
"""Log-odds that no network has, on either side."""


def _ends(value: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
    low, high = value(np.array([-FAR, FAR]))
    return float(low), float(high)


IDENTITY = Link("identity", _same, _same)
LOGIT = Link("logit", _percent, _log_odds, _ends(_percent))
"""The sum of terms is the logarithm of the odds, and the value is a share in percent."""


ABOVE = "logit above "


@cache
def logit_above(floor: float) -> Link:
    """The link of accuracies that no network falls below: floor + (100 - floor) times the share of the odds.

    A network that only guesses is right by chance. Log-odds of such accuracies do not tell how bad it is.

    Args:
        floor: percent, from 0, where it is ``LOGIT``, to below 100.
    """
    if floor == 0.0:
        return LOGIT
    rest = 1.0 - floor / 100.0

    def value(linear: FloatArray) -> FloatArray:
        return np.asarray(floor + rest * _percent(linear), dtype=np.float64)

    def linear(percent: FloatArray) -> FloatArray:
        return _log_odds((np.asarray(percent, dtype=np.float64) - floor) / rest)

    return Link(f"{ABOVE}{floor!r}", value, linear, _ends(value))


def power_law(factor: float, power: float) -> Link:
    """The link of values that are ``factor`` times the sum to the power of ``power``, both above 0; 0 below 0."""

    def value(linear: FloatArray) -> FloatArray:
        return np.asarray(factor * np.maximum(linear, 0.0) ** power, dtype=np.float64)

    def linear(values: FloatArray) -> FloatArray:
        return np.asarray((np.asarray(values) / factor) ** (1.0 / power), dtype=np.float64)

    return Link(f"power law {factor!r} {power!r}", value, linear, (0.0, math.inf))


def turned(link: Link) -> Link:
    """The link from minus the sum to minus the value, which rises where the link rises."""
    if link == IDENTITY:
        return IDENTITY
    low, high = link.ends
    return Link(
        f"minus {link.name}", lambda sums: -link.value(-sums), lambda values: -link.linear(-values), (-high, -low)
    )


def link_of(name: str) -> Link:
    """The link of a name.

    Raises:
        KeyError: no link has this name.
    """
    if name.startswith(ABOVE):
        return logit_above(float(name.removeprefix(ABOVE)))
    return {link.name: link for link in (IDENTITY, LOGIT)}[name]


def points_of_log_odds(percent: FloatArray, floor: float = 0.0) -> FloatArray:
    """How fast percentages ``[n]`` rise with their log-odds, points for each unit of log-odds: ``[n]``.

    Args:
        percent: accuracies.
        floor: of ``logit_above``, percent.
    """
    share, least = np.asarray(percent, dtype=np.float64) / 100.0, floor / 100.0
    above = np.maximum(share - least, 0.0)
    return np.asarray(100.0 * above * (1.0 - share) / (1.0 - least), dtype=np.float64)
