"""The choice: the most accurate member that meets its deadline now.

A member *fits* where three things hold under the load of the monitor:

    P(latency <= deadline) >= q,    rate * latency <= 1,    rate * CPU time <= quota.

The second keeps a queue of requests from growing, the third holds under a quota of CPU time (cgroup). CPU time is that
of one of the threads that compute an inference, and so is the quota: each thread has an equal part of the process'.

Where the active member no longer fits, the best one that fits follows at once. A better one follows only where it fits
with a margin, and when the last switch is a while ago (*dwell*), so that noise does not switch to and fro. Where
nothing fits, the member with the least latency runs, and the decision says so.

Without a battery the best member is the most accurate one. With a battery it has the largest

    mu Norm(accuracy) - (1 - mu) Norm(energy),    mu = level of the battery

(CrowdHMTware, equation 3, maximised), where Norm scales the pool's members to 0 .. 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.runtime.errors import PoolError
from autotailor.runtime.monitor import Monitor
from autotailor.runtime.table import Floats, Table

MILLISECONDS = 1000.0


@dataclass(frozen=True)
class Policy:
    """What a pool must meet.

    Attributes:
        deadline_ms: of one inference.
        quantile: q, the probability with which an inference is to meet its deadline; from 0.5 to below 1.
        rate: requests a second; 0 where they come one at a time.
        quota: cores that the process may use (cgroup); infinite without a quota. ``decide`` takes the cores that each
            thread of an inference may use.
        margin: share by which a better member must fit before it is switched to.
        dwell_s: seconds after a switch in which no better member is switched to.
        horizon: inferences ahead for which the load is forecast; a switch takes effect after some.
    """

    deadline_ms: float
    quantile: float = 0.95
    rate: float = 0.0
    quota: float = math.inf
    margin: float = 0.1
    dwell_s: float = 0.1
    horizon: int = 1

    def __post_init__(self) -> None:
        for name, is_valid, expected in (
            ("deadline_ms", 0 < self.deadline_ms < math.inf, "a positive number of milliseconds"),
            ("quantile", 0.5 <= self.quantile < 1, "a probability from 0.5 to below 1"),
            ("rate", 0 <= self.rate < math.inf, "a number of requests a second, not negative"),
            ("quota", self.quota > 0, "a positive number of cores"),
            ("margin", 0 <= self.margin < math.inf, "a share, not negative"),
            ("dwell_s", 0 <= self.dwell_s < math.inf, "a number of seconds, not negative"),
            ("horizon", self.horizon >= 1, "a number of inferences, at least 1"),
        ):
            if not is_valid:
                raise PoolError(f"policy: {name} is {getattr(self, name)}, expected {expected}")


@dataclass(frozen=True)
class Decision:
    """What is to run.

    Attributes:
        row: of the table.
        event: ``stay``, ``down`` (the active member no longer fits), ``up`` (a better one fits), or ``nothing fits``.
        latency_ms: latency of the chosen member that is not exceeded with the policy's probability.
    """

    row: int
    event: str
    latency_ms: float


def scores(table: Table, battery: float | None) -> Floats:
    """What members are ranked by, ``[n]``: accuracy, or with a battery its weighted difference to energy.

    Args:
        table: the members.
        battery: level from 0 to 1; None without a battery.

    Raises:
        PoolError: the level is no share, or a member's energy is unknown.
    """
    if battery is None:
        return table.accuracy
    if not 0 <= battery <= 1:
        raise PoolError(f"battery: the level is {battery}, expected a share from 0 to 1")
    if np.isnan(table.energy_mj).any():
        raise PoolError(
            "battery: the energy of a member is unknown, because the device has no sensor or the sensor was not read: "
            "leave the battery out"
        )
    return battery * _norm(table.accuracy) - (1 - battery) * _norm(table.energy_mj)


def _norm(values: Floats) -> Floats:
    spread = float(np.ptp(values))
    scaled: Floats = (values - values.min()) / (spread or 1.0)
    return scaled


def bounds_ms(table: Table, monitor: Monitor, policy: Policy) -> Floats:
    """Latencies ``[n]`` that members do not exceed with the policy's probability under the load."""
    return monitor.bounds_ms(table.split_ms, policy.quantile, policy.horizon)


def decide(
    table: Table,
    monitor: Monitor,
    policy: Policy,
    active: int,
    since_switch_s: float = math.inf,
    battery: float | None = None,
) -> Decision:
    """The member that is to run next.

    Args:
        table: the members.
        monitor: what is known of the load.
        policy: what must be met.
        active: row of the member that runs now.
        since_switch_s: seconds since the last switch.
        battery: its level from 0 to 1; None without a battery.
    """
    bounds = bounds_ms(table, monitor, policy)
    demand, limit, ranking = _demand_ms(table, monitor, policy, bounds), _limit_ms(policy), scores(table, battery)
    if demand[active] > limit:
        found = _best(ranking, demand <= limit)
        row, event = (table.fastest, "nothing fits") if found is None else (found, "down")
        return Decision(row, event, float(bounds[row]))
    if since_switch_s >= policy.dwell_s:
        found = _best(ranking, demand * (1 + policy.margin) <= limit)
        if found is not None and ranking[found] > ranking[active]:
            return Decision(found, "up", float(bounds[found]))
    return Decision(active, "stay", float(bounds[active]))


def best_of(rows: Sequence[int], table: Table, monitor: Monitor, policy: Policy, battery: float | None = None) -> int:
    """Of some rows the best that fits, or the fastest where none fits; arguments as of ``decide``."""
    bounds = bounds_ms(table, monitor, policy)
    demand, limit, ranking = _demand_ms(table, monitor, policy, bounds), _limit_ms(policy), scores(table, battery)
    fitting = [row for row in sorted(rows) if demand[row] <= limit]
    return max(fitting, key=lambda row: ranking[row]) if fitting else min(rows, key=lambda row: bounds[row])


def _limit_ms(policy: Policy) -> float:
    """What the demand of a member that fits does not exceed."""
    return min(policy.deadline_ms, MILLISECONDS / policy.rate) if policy.rate else policy.deadline_ms


def _demand_ms(table: Table, monitor: Monitor, policy: Policy, bounds: Floats) -> Floats:
    """The latencies ``bounds``, or more where a member needs more CPU time than the quota gives."""
    return np.maximum(bounds, _quota_ms(table, monitor, policy)) if _has_quota(policy) else bounds


def _has_quota(policy: Policy) -> bool:
    return policy.rate > 0 and policy.quota < math.inf


def _quota_ms(table: Table, monitor: Monitor, policy: Policy) -> Floats:
    """CPU time ``[n]``, scaled so that it exceeds the limit where rate times CPU time exceeds the quota."""
    limit = _limit_ms(policy)
    allowed = policy.quota * MILLISECONDS / policy.rate
    return monitor.load.cpu_ms(table.split_ms) * (limit / allowed)


def _best(ranking: Floats, fits: npt.NDArray[np.bool_]) -> int | None:
    """Row of the best member that fits, of equal ones the first; None where none fits."""
    row = int(np.where(fits, ranking, -np.inf).argmax())
    return row if fits[row] else None
