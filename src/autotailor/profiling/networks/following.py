"""How far a network follows the anchor when the machine changes its speed.

A network in whose batches the anchor takes a has the latency L * (a / reference) ** f: with f = 1 the network slows
down as the anchor does, with f = 0 it feels nothing of what slows the anchor down. The latency at the reference is

    L = raw * (reference / a) ** f

A lower clock slows all networks alike, and f is 1. Another program on the core does not: a run of 1.6 ms, as the
anchor's, is interrupted in every second run, a run of 0.1 ms so rarely that all interrupted runs are among the slowest
twentieth, which no mean counts. Scaled by the anchor, such a network would come out nearly twice too fast.

So f is read off the batches in which the network was timed, as the slope of its logarithm over the anchor's. Where the
anchor hardly differs between the batches, they tell nothing of f; it is then 1.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

NOISE = 0.05
"""Relative spread of the anchor between batches that counts as evidence for f = 1 as much as the batches count."""


def following(anchors: npt.ArrayLike, latencies: npt.ArrayLike) -> float:
    """The exponent f by which a network follows the anchor, from 0 to 1.

    The slope of least squares, with f = 1 as if as many further batches, whose anchors differ by ``NOISE``, had shown
    it. f is not above 1, because a slope from a few batches must not correct more than the anchor says.

    Args:
        anchors: the anchor's latency in each batch that timed the network.
        latencies: the network's latency in the same batches, not scaled.
    """
    anchor, network = _centred(anchors), _centred(latencies)
    prior = len(anchor) * NOISE**2
    slope = (prior + anchor @ network) / (prior + anchor @ anchor)
    return float(np.clip(slope, 0.0, 1.0))


def scale(anchor_ms: float, reference_ms: float, follows: float) -> float:
    """The factor that brings a latency to the speed at which the anchor takes ``reference_ms``."""
    return float((reference_ms / anchor_ms) ** follows)


def _centred(latencies: npt.ArrayLike | Sequence[float]) -> npt.NDArray[np.float64]:
    """Logarithms of latencies, minus their mean."""
    logarithms = np.log(np.asarray(latencies, dtype=np.float64))
    return np.asarray(logarithms - logarithms.mean())
