"""The largest SubNet as a unit: what a session has measured, as if the largest SubNet took a given latency in it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from autotailor.ir.space.subnet import SubNet


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
