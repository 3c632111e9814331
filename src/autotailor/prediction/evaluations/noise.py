"""Noise of log-odds and of mean losses over draws of base images, to first order (delta method).

With n images, image i adds z_i / n to the error of a number. Each image has a value v_i from 0 to 1, which says how
right a network is about it (``Outcome``); a classifier's are 0 and 1. For the log-odds of their mean p, for a
classifier the share of right answers,

    z_i = (v_i - p) / (p (1 - p)),

or, where guessing alone has the mean c, and the log-odds are those of (p - c) / (1 - c),

    z_i = (v_i - p) (1 - c) / ((p - c) (1 - p)),

for the logarithm of the mean loss, where m is the mean,

    z_i = loss_i / m - 1,

and for the mean itself

    z_i = loss_i - m.

Copies of one base image are summed up first, since base images are the independent draws. With the sums s_g of G base
images, the covariance of two values is G / (G - 1) times the sum of the products of their s_g / n. A weighted sum of
values has the weighted sum of their effects.
"""

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray
from autotailor.prediction.evaluations.outcome import PredictionError

LEAST_LOSS = 1e-6
"""Nats; a smaller mean loss counts as this, because the logarithm of 0 is no number."""


def log_odds(total: npt.ArrayLike, images: int, floor: float = 0.0) -> FloatArray:
    """Log-odds of means of values from sums of values, with half an image added to either side.

    Args:
        total: sums of the values of all images; for a classifier numbers of right answers.
        images: number of images.
        floor: mean value that guessing has; the log-odds are those of what is above it, of half an image
            at the least.
    """
    r = np.asarray(total, dtype=np.float64)
    return np.asarray(np.log(np.maximum(r + 0.5 - floor * images, 0.5)) - np.log(images - r + 0.5), dtype=np.float64)


def mean_loss(losses: npt.ArrayLike) -> FloatArray:
    """Mean of losses ``[..., images]``, summed in fp64, at least ``LEAST_LOSS``: ``[...]``."""
    return np.maximum(np.mean(np.asarray(losses), axis=-1, dtype=np.float64), LEAST_LOSS)


def of_values(values: FloatArray, floor: float = 0.0, least: float = 0.0) -> FloatArray:
    """Effect z of each image on log-odds, from values ``[n, images]``: ``[n, images]``.

    Args:
        values: from 0 to 1.
        floor: see ``log_odds``.
        least: a smaller mean p counts as this in the denominator.
    """
    images = values.shape[1]
    share = (values.sum(axis=1, keepdims=True) + 0.5) / (images + 1)
    share = np.maximum(share, least)
    above = np.maximum(share - floor, 0.5 / (images + 1))
    return np.asarray((values - values.mean(axis=1, keepdims=True)) * ((1 - floor) / (above * (1 - share))))


def of_losses(losses: npt.ArrayLike) -> FloatArray:
    """Effect z of each image on the logarithm of the mean loss, from losses ``[n, images]``: ``[n, images]``."""
    values = np.asarray(losses, dtype=np.float64)
    return np.asarray((values - values.mean(axis=1, keepdims=True)) / mean_loss(values)[:, None])


def of_divergences(losses: npt.ArrayLike) -> FloatArray:
    """Effect z of each image on the mean of losses ``[n, images]``: ``[n, images]``."""
    values = np.asarray(losses, dtype=np.float64)
    return np.asarray(values - values.mean(axis=1, keepdims=True))


def by_base(effects: FloatArray, groups: npt.NDArray[np.int64]) -> FloatArray:
    """Effects of base images, scaled so that the products of two rows add up to the covariance of the two values.

    Args:
        effects: of images, ``[n, images]``.
        groups: base image of each image, ``[images]``.

    Returns:
        ``[n, base images]``.

    Raises:
        PredictionError: there is a single base image.
    """
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max()) + 1
    if count < 2:
        raise PredictionError("a single base image says nothing about noise; evaluate on more images")
    sums = np.stack([np.bincount(group, weights=row, minlength=count) for row in effects])
    return np.asarray(sums * (np.sqrt(count / (count - 1)) / effects.shape[1]))


def common(covariance: FloatArray) -> FloatArray:
    """The part of each variance that belongs to the leading component of a covariance ``[n, n]``: ``[n]``."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(values[-1] * vectors[:, -1] ** 2)
