"""Which SubNets were tried for each budget before polishing, and what was measured of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import numpy as np

from autotailor.ir.space.subnet import SubNet, largest
from autotailor.measurement.sessions import SHARE, Timed
from autotailor.search.choice import Accuracies, Candidates, columns, outlook_of
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import NONE, Limits
from autotailor.search.robust.distribution import Distribution
from autotailor.search.robust.forecast import ROUNDING, LatencyForecast, Timing

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

MEASURED = ("latency_ms_measured", "latency_ms_standard_error", *SHARE, "probability", "met")
"""Columns of ``confirmed.csv`` behind those of ``candidates.csv``."""
Time = Callable[[Sequence[SubNet]], Sequence[Timed]]
"""Measures the latency of distinct SubNets, and what each takes of the largest SubNet's in the same rounds."""


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
        self._times: dict[SubNet, Timed] = {}
        self._costs: dict[SubNet, float] = {}
        self._outlooks: dict[tuple[SubNet, bool], Distribution] = {}

    @property
    def everyone(self) -> tuple[SubNet, ...]:
        """All SubNets that were tried."""
        return tuple(dict.fromkeys(subnet for subnets in self._tried.values() for subnet in subnets))

    def begin(self, again: Iterable[SubNet], bolder: Sequence[float] = ()) -> None:
        """Measures the candidates, and learns from SubNets with another session how far sessions differ.

        Where budgets are shares, the largest SubNet is among these, so that the table can state them in its latency.

        Args:
            again: see ``confirm``.
            bolder: see ``confirm``.
        """
        for name in self._limits if self._time is not None else ():
            self._tried[name] += self._bolder(name, bolder)
        fresh = [subnet for subnet in self.everyone if subnet.id not in self._earlier]
        names = {name for session in self._forecast.sessions.latencies for name in session}
        shared = [subnet for subnet in again if subnet.id in names]
        whole = [largest(self._front.space)] if self._shares else []
        self.measure(dict.fromkeys([*fresh, *shared, *whole]) if fresh else ())
        self._forecast = self._forecast.after_session({subnet.id: each for subnet, each in self._times.items()})

    def measure(self, subnets: Iterable[SubNet]) -> None:
        """Measures those that were not measured yet."""
        fresh = [subnet for subnet in subnets if subnet not in self._times]
        if self._time is not None and fresh:
            self._times |= dict(zip(fresh, self._time(fresh), strict=True))
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
        limit = self._limits[name]
        if sure := self._sure(name):
            best = max(sure, key=lambda subnet: (accuracies[subnet.id].posterior, -self._predicted(subnet)))
            first = max(self._tried[name], key=self._accuracy)
            if first not in sure and (last := self._last(first)) is not None:
                log.info(
                    "%s: SubNet %s takes the place of SubNet %s, which was measured at %s, and meets %s again with a "
                    "probability of %.1f %%, where %.4g %% are asked for (search.confidence)",
                    *(name, best.id, first.id, self._told(name, last), self._told(name)),
                    self._outlook(first, name).percent(limit),
                    100 * self._forecast.confidence,
                )
            return best
        best = max(self._tried[name], key=lambda subnet: self._outlook(subnet, name).probability(limit))
        if (last := self._last(best)) is not None:
            log.warning(
                "%s: of %d SubNets that were measured, none is sure to meet %s; SubNet %s is taken, at %s, "
                "which meets it again with a probability of %.1f %%, and %.4g %% are asked for "
                "(search.confidence): raise the budget, or ask for less",
                *(name, len(self._tried[name]), self._told(name), best.id, self._told(name, last)),
                self._outlook(best, name).percent(limit),
                100 * self._forecast.confidence,
            )
        return best

    def table(self, accuracies: Accuracies, chosen: Mapping[str, SubNet]) -> pd.DataFrame:
        """``confirmed.csv``."""
        import pandas as pd

        rows = [
            (
                name,
                limit * self._now if self._is_share(name) else limit,
                self._shares[name] if self._is_share(name) else None,
                subnet.id,
                self._predicted(subnet),
                *outlook_of(self._forecast, subnet, self._predicted(subnet)),
                float(self._objectives.accuracy.predict(subnet.to_array())[0]),
                *astuple(accuracies[subnet.id]),
                subnet == chosen[name],
                subnet.to_json(),
                *self._measured(subnet),
                self._outlook(subnet, name).probability(limit),
                self._is_sure(subnet, name),
            )
            for name, limit in self._limits.items()
            for subnet in dict.fromkeys([*self._tried[name], *self._sure(name)])
        ]
        return pd.DataFrame(rows, columns=[*columns(self._objectives.kind), *MEASURED])

    def _sure(self, name: str) -> list[SubNet]:
        """The SubNets that meet a budget with the confidence, those that were tried for other budgets included."""
        allowed = self._beside.get(name, NONE)
        sure = [subnet for subnet in self.everyone if self._is_sure(subnet, name)]
        return [subnet for subnet in sure if subnet in self._tried[name] or allowed.allow(subnet)]

    def _is_sure(self, subnet: SubNet, name: str) -> bool:
        return self._judging(name).is_met(self._outlook(subnet, name), self._limits[name])

    def _is_share(self, name: str) -> bool:
        return name in self._shares and self._forecast.shares is not None

    def _judging(self, name: str) -> LatencyForecast:
        return self._forecast.judging(shares=self._is_share(name))

    @property
    def _now(self) -> float:
        """Latency of the largest SubNet in this session over that in which budgets that are shares are kept."""
        whole = self._forecast.judging(shares=True).whole
        now = None if whole is None else self._times.get(whole.subnet)
        return 1.0 if whole is None or now is None else now.latency_ms / whole.latency_ms

    def _told(self, name: str, last: Timing | None = None) -> str:
        """A budget, or what was measured for it, as messages name it."""
        unit = self._objectives.kind.unit
        if self._is_share(name):
            share = self._shares[name] if last is None else last.share
            return f"{100 * share:.3g} % of the largest SubNet's {self._objectives.kind.title}"
        return f"{self._limits[name] if last is None else last.latency_ms:.4g} {unit}"

    def _next(self, name: str, *, is_last: bool) -> SubNet | None:
        """The SubNet of the front to measure next; None where the choice of the search holds, or none is better."""
        sure, tried = self._sure(name), self._tried[name]
        missed = [subnet for subnet in tried if subnet not in sure]
        if max(tried, key=self._accuracy) in sure or not missed:
            return None
        judging = self._judging(name)
        closest = min(missed, key=lambda subnet: self._outlook(subnet, name).quantile(judging.confidence))
        factor = self._outlook(closest, name).quantile(judging.confidence) / self._predicted(closest)
        limit = min(self._limits[name] / factor, self._predicted(closest) * (1 - ROUNDING))
        row = max(int(np.searchsorted(self._front.cost, limit, side="right")) - 1, 0)
        rows = range(0 if is_last and not sure else row, -1, -1)
        cheaper = (SubNet.from_array(self._front.space, self._front.indices[r]) for r in rows)
        allowed = self._beside.get(name, NONE)
        everyone = set(self.everyone)
        offer = next((subnet for subnet in cheaper if subnet not in everyone and allowed.allow(subnet)), None)
        reached = max((self._accuracy(subnet) for subnet in sure), default=-np.inf)
        return offer if offer is not None and self._accuracy(offer) > reached else None

    def _bolder(self, name: str, probabilities: Sequence[float]) -> list[SubNet]:
        """The best SubNets of the front that meet a budget with these probabilities, as far as they promise more."""
        judging, allowed = self._judging(name), self._beside.get(name, NONE)
        reached = max(map(self._accuracy, self._tried[name]))
        more: list[SubNet] = []
        for probability in probabilities:
            limit = replace(judging, confidence=min(probability, judging.confidence)).limit(self._limits[name])
            row = int(np.searchsorted(self._front.cost, limit, side="right")) - 1
            subnet = SubNet.from_array(self._front.space, self._front.indices[max(row, 0)])
            if allowed.allow(subnet) and subnet not in (*self._tried[name], *more) and self._accuracy(subnet) > reached:
                more.append(subnet)
        return more

    def _accuracy(self, subnet: SubNet) -> float:
        """What is known of a SubNet's accuracy before SubNets that were added are evaluated."""
        if subnet.id in self._accuracies:
            return self._accuracies[subnet.id].posterior
        return float(self._objectives.accuracy.predict(subnet.to_array())[0])

    def _outlook(self, subnet: SubNet, name: str) -> Distribution:
        """Of the next measurement of a SubNet, as the forecast of a budget has it."""
        key = subnet, self._is_share(name)
        if key not in self._outlooks:
            self._outlooks[key] = self._judging(name).after(subnet, self._predicted(subnet), self._timings(subnet))
        return self._outlooks[key]

    def _predicted(self, subnet: SubNet) -> float:
        if subnet not in self._costs:
            self._costs[subnet] = float(self._objectives.cost.predict(subnet.to_array())[0])
        return self._costs[subnet]

    def _measured(self, subnet: SubNet) -> tuple[float, ...]:
        """The last measurement with its standard error in ms, and the share with its standard error."""
        last = self._last(subnet)
        if last is None:
            return (np.nan,) * 4
        return last.latency_ms, last.standard_error, last.share, last.share_error

    def _last(self, subnet: SubNet) -> Timing | None:
        return next(reversed(self._timings(subnet)), None)

    def _timings(self, subnet: SubNet) -> list[Timing]:
        """What all sessions have measured of a SubNet, the oldest first."""
        return [*self._earlier.get(subnet.id, ()), *filter(None, [self._times.get(subnet)])]
