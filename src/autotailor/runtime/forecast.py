"""The forecast of the load: autoregressive, and used only while it beats 'as now' on what has just happened.

AdaScale (section IV-A) forecasts a load index with an autoregressive model. The model here is

    x_t = a_0 + a_1 x_(t-1) + ... + a_p x_(t-p),

fitted by least squares to the last values. Before each value arrives, both the model and 'as now' (x_t = x_(t-1)) say
what the value will be; their squared errors over the last forecasts are the backtest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotailor.runtime.table import Floats

ORDER = 2
WINDOW = 48
"""Values that the model is fitted to."""
BACKTEST = 16
"""Forecasts that the backtest compares; with fewer, 'as now' holds."""
RANGE = (0.25, 4.0)
"""The forecast stays within this range of the present value; guards an unstable fit."""


def fit(values: Sequence[float], order: int = ORDER) -> Floats:
    """Coefficients ``[1 + order]`` by least squares: the constant, then that of the latest value, the one before ..."""
    x = np.asarray(values, dtype=np.float64)
    rows = np.lib.stride_tricks.sliding_window_view(x, order + 1)
    design = np.column_stack([np.ones(len(rows)), rows[:, -2::-1]])
    coefficients: Floats = np.asarray(np.linalg.lstsq(design, rows[:, -1], rcond=None)[0], dtype=np.float64)
    return coefficients


@dataclass(frozen=True)
class Forecast:
    """A series with the forecasts of its next value.

    Attributes:
        values: the last values, the latest last.
        model: coefficients, see ``fit``; None before there are enough values.
        errors: squared errors of the last forecasts, as (the model's, that of 'as now').
    """

    values: tuple[float, ...] = ()
    model: tuple[float, ...] | None = None
    errors: tuple[tuple[float, float], ...] = ()

    @property
    def said(self) -> float | None:
        """What the model says of the next value; None before there is a model."""
        return self._ahead(self.model, 1) if self.model else None

    def observed(self, value: float) -> Forecast:
        """The forecast after one more value."""
        errors, said = self.errors, self.said
        if said is not None:
            found = ((value - said) ** 2, (value - self.values[-1]) ** 2)
            errors = (*errors[-BACKTEST + 1 :], found)
        values = (*self.values[-WINDOW + 1 :], value)
        model = tuple(fit(values).tolist()) if len(values) >= 4 * ORDER else None
        return Forecast(values, model, errors)

    @property
    def is_used(self) -> bool:
        """Whether the backtest is complete, and the model's errors in it are smaller than those of 'as now'."""
        if len(self.errors) < BACKTEST:
            return False
        return sum(model for model, _ in self.errors) < sum(as_now for _, as_now in self.errors)

    def factor(self, steps: int = 1) -> float:
        """What the value is forecast to be some steps on, as a multiple of the present one; 1 where 'as now' holds."""
        if self.model is None or not self.is_used or self.values[-1] <= 0:
            return 1.0
        least, most = RANGE
        return min(max(self._ahead(self.model, steps) / self.values[-1], least), most)

    def _ahead(self, model: tuple[float, ...], steps: int) -> float:
        """What a model says of the value some steps on."""
        constant, *weights = model
        recent = list(self.values[: -ORDER - 1 : -1])
        for _ in range(steps):
            value = constant + sum(weight * each for weight, each in zip(weights, recent, strict=True))
            recent = [value, *recent[:-1]]
        return recent[0]
