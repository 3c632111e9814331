"""A metric of a run's SubNets with its standard error, and where its numbers come from."""

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space


class Predictor(Protocol):
    """What predicts a number for each SubNet: a sum of terms, a peak of memory, a standard error."""

    @property
    def space(self) -> Space:
        """The variables."""

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Values ``[n]`` for choice indices ``[n, variables]``."""


@dataclass(frozen=True)
class Estimate:
    """One number about one SubNet.

    Attributes:
        value: in ``unit``.
        unit: ``ms``, ``mJ``, ``MiB``, ``millions`` or ``%``.
        standard_error: in ``unit``; None where it is not known.
        source: the artifact that the number comes from, and how it follows from the artifact.
    """

    value: float
    unit: str
    standard_error: float | None
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class KnownMetric:
    """A metric that a run can predict.

    Attributes:
        name: for questions: ``latency``, ``accuracy`` ...
        unit: of its values.
        metric: predicts values.
        error: predicts their standard errors; None where they are not known.
        source: where the numbers come from.
        is_best_high: whether a higher value is better.
    """

    name: str
    unit: str
    metric: Predictor
    error: Predictor | None
    source: str
    is_best_high: bool = False

    @property
    def sign(self) -> float:
        """1 for a metric that is minimised, -1 for one that is maximised."""
        return -1.0 if self.is_best_high else 1.0

    def estimate(self, subnet: SubNet) -> Estimate:
        """The prediction for one SubNet."""
        row = subnet.to_array()
        error = None if self.error is None else float(self.error.predict(row)[0])
        return Estimate(float(self.metric.predict(row)[0]), self.unit, error, self.source)
