"""How far the latencies of one network differ from session to session, relative to the anchor.

A session is some minutes of measuring. Rounds within it say nothing of what all of them have in common: where memory
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autotailor.search.robust.distribution import Variance

WORTH = 4.0
"""Degrees of freedom that the configured noise between sessions counts for."""

Latencies = Mapping[str, float]
"""Id of a SubNet to the latency that one session has measured, ms."""


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
        found = squares / sum(len(logs) - 1 for logs in repeated)
        degrees = max(map(len, repeated)) - 1
        return Variance((WORTH * self.usual**2 + degrees * found) / (WORTH + degrees), WORTH + degrees)

    def _logs(self) -> list[list[float]]:
        """For each SubNet the logarithms of its latencies."""
        names = dict.fromkeys(name for session in self.latencies for name in session)
        return [[math.log(session[name]) for session in self.latencies if name in session] for name in names]


ALIKE = Sessions()
"""Sessions that do not differ."""
