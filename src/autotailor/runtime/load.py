"""The load model: how much slower each class of operators runs now, learnt from the inferences themselves.

An inference of a member with unloaded latencies s_k (in operators of class k) takes the CPU time c and the wall time w.
With s = sum_k s_k and the shares f_k = s_k / s,

    c / s = sum_k theta_k f_k + noise,        (w - c) / c = waiting.

CPU time grows where operators run slower: caches, bandwidth and clock. Wall time without CPU time is waiting for the
processor; its mean share says how much there is, and ``waits`` how it falls on inferences. theta is found by recursive
least squares with exponential forgetting: after n inferences it minimises

    sum_i L^(n-i) (y_i - f_i theta)^2 + sum_i (1 - L) L^(n-i) R |theta - rho_i 1|^2 + L^n R |theta - 1|^2.

y_i = c_i / s_i, L is the factor of forgetting, R the weight of the assumption that all classes are slowed down alike,
and rho_i the mean of y so far, with the same forgetting. What the inferences say nothing of thus follows the common
ratio, which is AdaptiveNet's r (section 5.3). What they do say contradicts one ratio: in AdaptiveNet's Table 2 one
background process slows ResNet50 down 1.49 times, and MobileNetV2 1.08 times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from autotailor.runtime.errors import PoolError
from autotailor.runtime.table import CLASSES, Floats

FORGETTING = 0.8
PRIOR = 0.02
"""R: small, because an inference's CPU time varies by a few percent, and classes differ by tens of percent."""
LEAST_SLOWDOWN = 0.2
"""No class is assumed to run more than five times as fast as without load; guards an extrapolation."""


def _ones() -> Floats:
    return np.ones(len(CLASSES))


@dataclass(frozen=True, eq=False)
class LoadModel:
    """What is known of the load after some inferences; ``observed`` returns the model after one more.

    Attributes:
        slowdown: theta ``[3]``, for each of ``CLASSES``; 1 without load.
        waiting: wall time that is no CPU time, as a share of the CPU time.
        ratio: rho, the slowdown of all classes together.
        information, moment: of the normal equations, ``[3, 3]`` and ``[3]``.
        forgetting: L; an inference's weight falls by this factor with each further inference.
    """

    slowdown: Floats = field(default_factory=_ones)
    waiting: float = 0.0
    ratio: float = 1.0
    information: Floats = field(default_factory=lambda: PRIOR * np.eye(len(CLASSES)))
    moment: Floats = field(default_factory=lambda: PRIOR * _ones())
    forgetting: float = FORGETTING

    @classmethod
    def at(cls, ratio: float, waiting: float, forgetting: float = FORGETTING) -> LoadModel:
        """The model that assumes one slowdown of all classes, and a waiting, before any inference."""
        slowdown = ratio * _ones()
        return cls(slowdown, waiting, ratio, moment=PRIOR * slowdown, forgetting=forgetting)

    def observed(self, split_ms: Floats, wall_ms: float, cpu_ms: float) -> LoadModel:
        """The model after one more inference.

        Args:
            split_ms: unloaded latency of the member's operators, by class, ``[3]``.
            wall_ms: of the inference.
            cpu_ms: of the inference, all its threads together divided by their number.

        Raises:
            PoolError: a time is not positive.
        """
        if not (wall_ms > 0 and cpu_ms > 0):
            raise PoolError(f"an inference takes positive times, not {wall_ms} ms of wall and {cpu_ms} ms of CPU time")
        kept, new = self.forgetting, 1 - self.forgetting
        nominal = float(split_ms.sum())
        shares, slower = split_ms / nominal, cpu_ms / nominal
        ratio = kept * self.ratio + new * slower
        information = kept * self.information + np.outer(shares, shares)
        information.flat[:: len(CLASSES) + 1] += new * PRIOR
        moment = kept * self.moment + slower * shares + new * PRIOR * ratio
        return replace(
            self,
            slowdown=np.asarray(np.linalg.solve(information, moment), dtype=np.float64),
            waiting=kept * self.waiting + new * max(0.0, wall_ms / cpu_ms - 1),
            ratio=ratio,
            information=information,
            moment=moment,
        )

    def cpu_ms(self, split_ms: Floats) -> Floats:
        """CPU time of members under this load: ``[n, 3]`` to ``[n]``."""
        slowed: Floats = split_ms @ self.slowdown
        if self.slowdown.min() < LEAST_SLOWDOWN:
            slowed = np.maximum(slowed, LEAST_SLOWDOWN * split_ms.sum(axis=-1))
        return slowed
