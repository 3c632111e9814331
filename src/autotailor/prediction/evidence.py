"""Prior variances by marginal likelihood.

A Bayesian linear model with weights w ~ N(m, diag(v)), targets y = F w + misfit + noise, misfit ~ N(0, s² I) and noise
~ N(0, D) has y ~ N(F m, S) with S = sum over groups of v_g F_g F_g^T + s² I + D. The variances v_g and s² maximise

    log N(y; F m, S) - 1/2 sum ((log v - log v0) / SPREAD)²,

that is, each has a wide log-normal prior around v0, which decides where there are too few evaluations to tell. A group
that the evaluations do not need gets a variance near 0, so that its functions hardly count.
"""

from collections.abc import Mapping

import numpy as np

from autotailor.ir.space.metric import FloatArray

SPREAD = 2.5  # standard deviation of the logarithm of each variance
BOUNDS = (-14.0, 3.0)  # of the logarithm of each variance
MISFIT = "misfit"
TYPICAL = {
    "offset": 0.1,
    "drops": 0.1,
    "drops_by_resolution": 0.02,
    "drops_by_variable": 0.1,
    "sizes": 0.05,
    "sizes_by_resolution": 0.005,
    "choices": 0.03,
    "pairs_with_resolution": 0.0025,
    "pairs": 0.0025,
    MISFIT: 0.003,
}
"""Around which variance the prior of each variance is, in squared log-odds (``drops``: relative to the weight of 1)."""


def maximise(kernels: Mapping[str, FloatArray], residual: FloatArray, noise: FloatArray) -> dict[str, float]:
    """Finds the variances; without any target, these are the typical ones.

    Args:
        kernels: name of a group to F_g F_g^T ``[n, n]``.
        residual: y - F m ``[n]``.
        noise: the diagonal of D ``[n]``.

    Returns:
        Name of a group to the variance of its weights; ``misfit`` to that of the misfit.
    """
    from scipy.optimize import minimize

    names = [*kernels, MISFIT]
    parts = [*kernels.values(), np.eye(len(residual))]
    typical = np.log([TYPICAL[name] for name in names])

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        variances = np.exp(logs)
        total = np.diag(noise) + sum(v * part for v, part in zip(variances, parts, strict=True))
        inverse = np.linalg.inv(total)
        weights = inverse @ residual
        away = (logs - typical) / SPREAD
        value = 0.5 * float(residual @ weights + np.linalg.slogdet(total)[1] + away @ away)
        slopes = [
            0.5 * v * (np.sum(inverse * p) - weights @ p @ weights) for v, p in zip(variances, parts, strict=True)
        ]
        return value, np.array(slopes) + away / SPREAD

    minimum = minimize(loss, typical, jac=True, method="L-BFGS-B", bounds=[BOUNDS] * len(names))
    return dict(zip(names, np.exp(minimum.x).tolist(), strict=True))
