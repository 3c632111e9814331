"""Which SubNets were tried for each budget before polishing, and what was measured of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

import numpy as np

from autotailor.ir.space.subnet import SubNet, largest
from autotailor.profiling.networks.timing import Measurement
from autotailor.search.choice import Accuracies, Candidates, columns
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import NONE, Limits
from autotailor.search.robust.distribution import Distribution
from autotailor.search.robust.forecast import ROUNDING, LatencyForecast, Timing

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

MEASURED = ("latency_ms_measured", "latency_ms_standard_error", "probability", "met")
"""Columns of ``confirmed.csv`` behind those of ``candidates.csv``."""
DISAGREEMENT = 0.05
"""Relative difference between two latencies of one network that counts as a changed machine, not as noise."""
Time = Callable[[Sequence[SubNet]], Sequence[Measurement]]
"""Measures the latency of distinct SubNets."""


class Trial:
    """The measurements so far, and which SubNets were tried for each budget; for the arguments see ``confirm``."""

    def __init__(
        self,
        objectives: Objectives,
        front: Front,
        candidates: Candidates,
        forecast: LatencyForecast,
        time: Time | None,
        beside: Mapping[str, Limits],
        earlier: Mapping[str, Sequence[Timing]],
        shares: Mapping[str, float],
    ) -> None:
        self._earlier, self._shares = earlier, shares
        self._beside = beside
        self._objectives, self._front, self._forecast, self._time = objectives, front, forecast, time
        self._limits, self._accuracies = candidates.limits, candidates.accuracies
        self._tried = {name: list(subnets) for name, subnets in candidates.contests.items()}
        self._found: dict[SubNet, Measurement] = {}
        self._costs: dict[SubNet, float] = {}
        self._outlooks: dict[SubNet, Distribution] = {}

    @property
    def everyone(self) -> tuple[SubNet, ...]:
        """All SubNets that were tried."""
        return tuple(dict.fromkeys(subnet for subnets in self._tried.values() for subnet in subnets))

    def begin(self, again: Iterable[SubNet]) -> None:
        """Measures the candidates, and learns from SubNets with another session how far sessions differ.

        Budgets that are shares follow the largest SubNet, which is measured along with the candidates.
        """
        fresh = [subnet for subnet in self.everyone if subnet.id not in self._earlier]
        known = {name for session in self._forecast.sessions.latencies for name in session}
        shared = [subnet for subnet in again if subnet.id in known]
        whole = [largest(self._front.space)] if self._shares else []
        self.measure(dict.fromkeys([*fresh, *shared, *whole]) if fresh else ())
        found = {subnet.id: each.latency_ms for subnet, each in self._found.items()}
        then = self._forecast
        self._forecast = self._forecast.after_session(found)
        if whole and self._found:
            self._restate(whole[0], then.expected(self._predicted(whole[0])))

    def _restate(self, whole: SubNet, then_ms: float) -> None:
        """Scales budgets that are shares by how the largest SubNet's latency differs from ``then_ms``.

        The search has read the shares with ``then_ms``, the latency of another session.
        """
        now_ms = self._outlook(whole).median_ms
        restated = {name: limit * now_ms / then_ms for name, limit in self._limits.items() if name in self._shares}
        self._limits = {**self._limits, **restated}
        if restated and abs(now_ms / then_ms - 1) > DISAGREEMENT:
            log.warning(
                "the largest SubNet takes %.4g ms by what is measured now, and took %.4g ms for the search: budgets "
                "that are shares follow it (%s), but the search did not; run again with --forcerun validate on a quiet "
                "device",
                *(now_ms, then_ms, ", ".join(f"{name} {limit:.4g} ms" for name, limit in restated.items())),
            )

    def measure(self, subnets: Iterable[SubNet]) -> None:
        """Measures those that were not measured yet."""
        fresh = [subnet for subnet in subnets if subnet not in self._found]
        if self._time is not None and fresh:
            self._found |= dict(zip(fresh, self._time(fresh), strict=True))
            self._outlooks.clear()

    def attempt(self, *, is_last: bool) -> bool:
        """Measures one more SubNet for each budget that the search's choice misses; False where there is none."""
        offers = {name: offer for name in self._limits if (offer := self._next(name, is_last=is_last)) is not None}
        for name, offer in offers.items():
            self._tried[name].append(offer)
        self.measure(dict.fromkeys(offers.values()))
        return bool(offers)

    def choose(self, name: str, accuracies: Accuracies) -> SubNet:
        """The SubNet of a budget with the highest posterior of accuracy, or the one most likely to meet the budget."""
        limit, unit = self._limits[name], self._objectives.kind.unit
        if sure := self._sure(name):
            best = max(sure, key=lambda subnet: (accuracies[subnet.id].posterior, -self._predicted(subnet)))
            first = max(self._tried[name], key=self._accuracy)
            if first not in sure and (found := self._last(first)) is not None:
                log.info(
                    "%s: SubNet %s takes the place of SubNet %s, which was measured at %.4g %s, with %.4g %s allowed",
                    *(name, best.id, first.id, found.latency_ms, unit, limit, unit),
                )
            return best
        best = max(self._tried[name], key=lambda subnet: self._outlook(subnet).probability(limit))
        if (found := self._last(best)) is not None:
            log.warning(
                "%s: of %d SubNets that were measured, none is sure to meet %.4g %s; SubNet %s is taken, at %.4g %s, "
                "which meets it again with a probability of %.0f %%: raise the budget, or lower search.confidence",
                *(name, len(self._tried[name]), limit, unit, best.id, found.latency_ms, unit),
                100 * self._outlook(best).probability(limit),
            )
        return best

    def table(self, accuracies: Accuracies, chosen: Mapping[str, SubNet]) -> pd.DataFrame:
        """``confirmed.csv``."""
        import pandas as pd

        rows = [
            (
                name,
                limit,
                subnet.id,
                self._predicted(subnet),
                self._forecast.of(subnet, self._predicted(subnet)).quantile(self._forecast.confidence),
                float(self._objectives.accuracy.predict(subnet.to_array())[0]),
                *astuple(accuracies[subnet.id]),
                subnet == chosen[name],
                subnet.to_json(),
                *self._measured(subnet),
                self._outlook(subnet).probability(limit),
                self._is_sure(subnet, limit),
            )
            for name, limit in self._limits.items()
            for subnet in dict.fromkeys([*self._tried[name], *self._sure(name)])
        ]
        return pd.DataFrame(rows, columns=[*columns(self._objectives.kind), *MEASURED])

    def _sure(self, name: str) -> list[SubNet]:
        """The SubNets that meet a budget with the confidence, those that were tried for other budgets included."""
        allowed = self._beside.get(name, NONE)
        sure = [subnet for subnet in self.everyone if self._is_sure(subnet, self._limits[name])]
        return [subnet for subnet in sure if subnet in self._tried[name] or allowed.allow(subnet)]

    def _is_sure(self, subnet: SubNet, limit: float) -> bool:
        return self._forecast.is_met(self._outlook(subnet), limit)

    def _next(self, name: str, *, is_last: bool) -> SubNet | None:
        """The SubNet of the front to measure next; None where the choice of the search holds, or none is better."""
        sure, tried = self._sure(name), self._tried[name]
        missed = [subnet for subnet in tried if subnet not in sure]
        if max(tried, key=self._accuracy) in sure or not missed:
            return None
        closest = min(missed, key=lambda subnet: self._outlook(subnet).quantile(self._forecast.confidence))
        factor = self._outlook(closest).quantile(self._forecast.confidence) / self._predicted(closest)
        limit = min(self._limits[name] / factor, self._predicted(closest) * (1 - ROUNDING))
        row = max(int(np.searchsorted(self._front.cost, limit, side="right")) - 1, 0)
        rows = range(0 if is_last and not sure else row, -1, -1)
        cheaper = (SubNet.from_array(self._front.space, self._front.indices[r]) for r in rows)
        allowed = self._beside.get(name, NONE)
        everyone = set(self.everyone)
        offer = next((subnet for subnet in cheaper if subnet not in everyone and allowed.allow(subnet)), None)
        known = max((self._accuracy(subnet) for subnet in sure), default=-np.inf)
        return offer if offer is not None and self._accuracy(offer) > known else None

    def _accuracy(self, subnet: SubNet) -> float:
        """What is known of a SubNet's accuracy before SubNets that were added are evaluated."""
        if subnet.id in self._accuracies:
            return self._accuracies[subnet.id].posterior
        return float(self._objectives.accuracy.predict(subnet.to_array())[0])

    def _outlook(self, subnet: SubNet) -> Distribution:
        """Of the next measurement of a SubNet."""
        if subnet not in self._outlooks:
            self._outlooks[subnet] = self._forecast.after(subnet, self._predicted(subnet), self._timings(subnet))
        return self._outlooks[subnet]

    def _predicted(self, subnet: SubNet) -> float:
        if subnet not in self._costs:
            self._costs[subnet] = float(self._objectives.cost.predict(subnet.to_array())[0])
        return self._costs[subnet]

    def _measured(self, subnet: SubNet) -> tuple[float, float]:
        """The last measurement with its standard error, ms."""
        last = self._last(subnet)
        return (np.nan, np.nan) if last is None else (last.latency_ms, last.standard_error)

    def _last(self, subnet: SubNet) -> Timing | None:
        return next(reversed(self._timings(subnet)), None)

    def _timings(self, subnet: SubNet) -> list[Timing]:
        """What all sessions have measured of a SubNet, the oldest first."""
        return [*self._earlier.get(subnet.id, ()), *filter(None, [self._found.get(subnet)])]
