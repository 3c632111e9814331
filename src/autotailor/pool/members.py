"""The members of a pool: SubNets of the front that lose least expected accuracy over a range of slowdowns.

Let the front have latencies l_1 < ... < l_n and accuracies a_1 < ... < a_n, and let the deadline be l_n, so that the
whole front fits without load. Under a slowdown x, SubNets of latency at most l_n / x fit, and the best has the row

    r(x) = max {i : l_i <= l_n / x},  or 1 where none fits.

A pool with rows P, which always holds row 1, runs the largest row of P up to r(x). Row n belongs to P, too, wherever P
has two members: without load, which is how most devices are most of the time, it is what runs. With m_i the share of
the slowdowns whose r is i, the pool loses

    sum_i m_i (a_i - a_p(i)),   p(i) = max {j in P : j <= i}.

The loss is a sum over the gaps between neighbours of P, so that dynamic programming finds the best P exactly: with
c(j, k) = sum_{j <= i < k} m_i (a_i - a_j), the best pool of q members whose largest row is k costs

    C_q(k) = min_{j < k} C_(q-1)(j) + c(j, k),

and the best pool of q members ends with k = n.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.subnet import SubNet
from autotailor.search import Front
from autotailor.serving.errors import PoolError

Floats = npt.NDArray[np.float64]
SLOWDOWNS = 61
"""Slowdowns that stand for the range, at equal distances from 1 to the largest: steps of 0.05 up to 4."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The members of a pool.

    Attributes:
        rows: of the front, rising, ``[k]``; the first is the row with the least latency, and the last, where there are
            two, the most accurate one.
        loss: expected accuracy that the pool loses against the whole front, in the unit of the accuracy.
    """

    rows: npt.NDArray[np.int64]
    loss: float


def choose_members(latency: npt.ArrayLike, accuracy: npt.ArrayLike, count: int, slowdown: float = 4.0) -> Chosen:
    """The pool of at most ``count`` SubNets of a front that loses least expected accuracy.

    Args:
        latency: of the front, ``[n]``, strictly rising.
        accuracy: of the front, ``[n]``, strictly rising.
        count: number of members; a front with fewer SubNets becomes the pool as a whole.
        slowdown: the largest slowdown; slowdowns are equally likely from 1 to this one.

    Raises:
        PoolError: the front is empty or does not rise, or a number is out of its range.
    """
    l, a = np.asarray(latency, dtype=np.float64), np.asarray(accuracy, dtype=np.float64)  # noqa: E741
    if not len(l) or l.shape != a.shape or (np.diff(l) <= 0).any() or (np.diff(a) <= 0).any() or l[0] <= 0:
        raise PoolError("a pool is chosen from a front whose latencies and accuracies rise; this one does not")
    if count < 1 or slowdown < 1:
        raise PoolError(f"pool: {count} members and slowdowns up to {slowdown}, expected at least one and 1")
    cost = gap_costs(shares(l, slowdown), a)
    n, count = len(l), min(count, len(l))
    total = np.full((count, n), np.inf)
    before = np.zeros((count, n), dtype=np.int64)
    total[0, 0] = 0.0
    for q in range(1, count):
        reached = total[q - 1][:, None] + cost[:, :n]
        before[q], total[q] = reached.argmin(axis=0), reached.min(axis=0)
    k = n - 1 if count > 1 else 0
    ended = total[:, k] + cost[k, n]
    q = int(ended.argmin())
    loss, rows = float(ended[q]), [k]
    while q:
        k, q = int(before[q, k]), q - 1
        rows.append(k)
    return Chosen(np.array(rows[::-1], dtype=np.int64), loss)


def members_of(front: Front, members: int, slowdown: float) -> tuple[Chosen, tuple[SubNet, ...]]:
    """The members of the pool of a front, and their SubNets; arguments as of ``choose_members``."""
    chosen = choose_members(front.cost, front.accuracy, members, slowdown)
    return chosen, tuple(front.take(chosen.rows).subnets)


def shares(latency: Floats, slowdown: float) -> Floats:
    """Share ``[n]`` of the slowdowns under which each row is the best that fits, or the first where none fits."""
    budgets = latency[-1] / np.linspace(1.0, slowdown, SLOWDOWNS)
    best = np.searchsorted(latency, budgets * (1 + 1e-12), side="right") - 1
    counts: Floats = np.bincount(np.maximum(best, 0), minlength=len(latency)) / SLOWDOWNS
    return counts


def gap_costs(share: Floats, accuracy: Floats) -> Floats:
    """c(j, k), ``[n, n + 1]``: what is lost where row j runs for all rows from j to below k; infinite unless k > j."""
    mass = np.concatenate(([0.0], np.cumsum(share)))
    value = np.concatenate(([0.0], np.cumsum(share * accuracy)))
    cost: Floats = value[None, :] - value[:-1, None] - accuracy[:, None] * (mass[None, :] - mass[:-1, None])
    rows, ends = np.indices(cost.shape)
    cost[ends <= rows] = np.inf
    return np.maximum(cost, 0.0)
