"""Limits of metrics, as questions name them: ``peak_memory<=2``, ``accuracy>=90``."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.runs.folder import RunError
from autotailor.runs.metrics import metric_name


@dataclass(frozen=True)
class Limit:
    """A bound of one metric.

    Attributes:
        metric: its name.
        value: in the metric's unit.
        is_lower: whether values below are refused; else values above.
    """

    metric: str
    value: float
    is_lower: bool = False

    def excess(self, values: FloatArray) -> FloatArray:
        """By what share of the bound each of the values ``[n]`` breaks it; 0 where the value keeps it."""
        over = (self.value - values) if self.is_lower else (values - self.value)
        return np.asarray(np.maximum(over, 0.0) / max(abs(self.value), 1e-12), dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.metric}{'>=' if self.is_lower else '<='}{self.value:g}"


def read_limits(limits: str | Iterable[str] | None) -> tuple[Limit, ...]:
    """One limit or several, each as ``read_limit`` reads it.

    Raises:
        RunError: something among them is no limit.
    """
    if isinstance(limits, str):
        return (read_limit(limits),)
    if limits is not None and not isinstance(limits, Iterable):
        raise RunError(f"limits {limits!r}: expected a list such as ['peak_memory<=2']")
    return tuple(read_limit(text) for text in limits or ())


def read_limit(text: str) -> Limit:
    """A limit such as ``peak_memory<=2`` or ``accuracy>=90``.

    Raises:
        RunError: the text is no limit.
    """
    try:
        found = re.fullmatch(r"\s*(\w+)\s*(<=|>=)\s*([^<>=]+)", text)
        value = float(found[3])  # type: ignore[index]
        if not math.isfinite(value):
            raise ValueError("not a finite number")
        return Limit(metric_name(found[1]), value, found[2] == ">=")  # type: ignore[index]
    except (TypeError, ValueError) as error:
        raise RunError(
            f"limit {text!r}: expected METRIC<=NUMBER or METRIC>=NUMBER, such as 'peak_memory<=2'"
        ) from error
