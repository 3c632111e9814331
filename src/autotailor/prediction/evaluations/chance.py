"""What chance explains: posteriors that evaluations on the same images do not contradict.

With the accuracies m of SubNets on the same images, and the standard errors e_ab of the paired differences m_a - m_b,
a SubNet a is clearly better than b where m_a - m_b > CLEAR e_ab. Posteriors p are mostly what a model believes, and a
model may be wrong. So they are bounded twice:

* The difference to the reference, the largest SubNet, is within CLEAR standard errors of the measured difference.
* A SubNet counts for less than each that is clearly better: p_b < p_a.

Standard errors of differences obey the triangle inequality, so that a is clearly better than c where it is clearly
better than b, and b clearly better than c. Therefore it is enough to lower each p_b once, to the lowest p_a of those
that are clearly better. Of any set of SubNets, the one with the highest p is then clearly worse than none of the set.
"""

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.prediction.evaluations.noise import by_base
from autotailor.prediction.evaluations.outcome import BoolArray

CLEAR = 2.0
"""Standard errors by which a difference is more than chance."""
APART = 1e-6
"""Share of the measured difference by which a clearly worse SubNet counts for less at the least."""


def paired_errors(values: FloatArray, groups: npt.NDArray[np.int64]) -> FloatArray:
    """Standard errors of differences of accuracy ``[n, n]``, points, from values of images ``[n, images]``.

    A difference is known to one image at best: few images on which two SubNets agree do not say that they always do.

    Args:
        values: of the same images, from 0 to 1 (``Outcome``).
        groups: base image of each image ``[images]``.
    """
    points = 100.0 * values
    effects = by_base(points - points.mean(axis=1, keepdims=True), groups)
    covariance = effects @ effects.T
    own = np.diag(covariance)
    squares = np.maximum(own[:, None] + own[None] - 2.0 * covariance, (100.0 / values.shape[1]) ** 2)
    np.fill_diagonal(squares, 0.0)
    return np.asarray(np.sqrt(squares))


def clearly_better(measured: FloatArray, errors: FloatArray) -> BoolArray:
    """Whether each SubNet is better than each other one by more than chance explains: ``[n, n]``."""
    return np.asarray(measured[:, None] - measured[None] > CLEAR * errors)


def uncontradicted(
    posterior: FloatArray, measured: FloatArray, errors: FloatArray, reference: int | None = None
) -> FloatArray:
    """Posteriors within what measurements leave open, see the module's docstring: ``[n]``.

    Args:
        posterior: of each SubNet ``[n]``, percent.
        measured: of each SubNet ``[n]``, percent.
        errors: standard errors of differences of measurements ``[n, n]``, points.
        reference: row of the SubNet whose posterior is its measurement, to which the others are compared; None leaves
            the first bound out.
    """
    if reference is not None:
        room = CLEAR * errors[:, reference]
        posterior = np.clip(posterior, measured - room, measured + room)
    limits = posterior[:, None] - APART * (measured[:, None] - measured[None])
    above = np.where(clearly_better(measured, errors), limits, np.inf).min(axis=0)
    return np.asarray(np.minimum(posterior, above))
