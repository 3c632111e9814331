"""Measures the SubNets that may be exported before any of them is polished, and replaces those that miss their budget.

A latency does not need trained weights, and polishing takes long. So the candidates of all budgets are measured first.
A measurement and the forecast together say how likely a SubNet meets its budget when it is measured again, in another
session. The largest and the smallest SubNet are measured along, because ``validate`` has measured them, too, so that
they tell how far sessions differ.

Only those SubNets that meet a budget with the confidence asked for compete for the budget. Where the search's choice is
not among them, further SubNets of the front are measured: each is the most accurate one that would meet the budget if
it were off by the factor by which the closest SubNet that misses is off. The attempts end where the next one promises
no more accuracy than a SubNet that meets the budget. While there is none, the last attempt is the cheapest SubNet of
the front.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from autotailor.artifacts import atomic, read_json, write_json
from autotailor.ir.space.subnet import SubNet, largest, smallest
from autotailor.profiling.networks.timing import Measurement
from autotailor.search.choice import Accuracies, Candidates, Measure, columns
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import NONE, Limits
from autotailor.search.robust.distribution import Distribution
from autotailor.search.robust.forecast import ROUNDING, LatencyForecast

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

MEASURED = ("latency_ms_measured", "latency_ms_standard_error", "probability", "met")
"""Columns of ``confirmed.csv`` behind those of ``candidates.csv``."""
Time = Callable[[Sequence[SubNet]], Sequence[Measurement]]
"""Measures the latency of distinct SubNets."""


@dataclass(frozen=True, eq=False)
class Confirmation:
    """What was measured before polishing.

    Attributes:
        subnets: chosen SubNets by name of the budget.
        table: ``confirmed.csv``, one row for each SubNet that was tried for a budget, and each that meets it: the
            columns of ``candidates.csv`` and ``MEASURED``. ``probability`` is that of meeting the budget in another
            measurement; ``met`` says whether it is as high as asked.
    """

    subnets: Mapping[str, SubNet]
    table: pd.DataFrame

    def write(self, path: Path) -> None:
        """Writes ``confirmed.csv``; an interrupted write leaves no file."""
        with atomic(path) as temporary:
            self.table.to_csv(temporary, index=False)

    def verdict(self) -> str:
        """How many SubNets were measured, and for how many budgets one meets its budget."""
        chosen = self.table[self.table["chosen"]]
        return (
            f"{self.table['subnet'].nunique()} SubNets measured before polishing: {int(chosen['met'].sum())} of "
            f"{len(chosen)} budgets are met as surely as asked"
        )


def confirm(
    objectives: Objectives,
    front: Front,
    candidates: Candidates,
    forecast: LatencyForecast,
    time: Time | None,
    measure: Measure,
    attempts: int,
    beside: Mapping[str, Limits] = MappingProxyType({}),
) -> Confirmation:
    """Measures the candidates of all budgets, and further SubNets where all candidates of a budget miss it.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search, from which further SubNets are taken.
        candidates: of the search.
        forecast: of measured costs.
        time: measures latencies; with None nothing is measured, and candidates are passed on as predicted.
        measure: measures the accuracy of further SubNets.
        attempts: how many further SubNets are measured for a budget at most, where the search's choice misses it.
        beside: name of a budget to its limits of further metrics, which every SubNet that competes for it keeps.
    """
    trial = _Trial(objectives, front, candidates, forecast, time, beside)
    trial.begin()
    for left in range(attempts if time is not None else 0, 0, -1):
        if not trial.attempt(is_last=left == 1):
            break
    late = [subnet for subnet in trial.everyone if subnet.id not in candidates.accuracies]
    accuracies = {**candidates.accuracies, **(measure(late) if late else {})}
    chosen = {name: trial.choose(name, accuracies) for name in candidates.limits}
    return Confirmation(chosen, trial.table(accuracies, chosen))


class _Trial:
    """The measurements so far, and which SubNets were tried for each budget."""

    def __init__(
        self,
        objectives: Objectives,
        front: Front,
        candidates: Candidates,
        forecast: LatencyForecast,
        time: Time | None,
        beside: Mapping[str, Limits],
    ) -> None:
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

    def begin(self) -> None:
        """Measures the candidates, and learns from SubNets with another session how far sessions differ."""
        space = self._front.space
        known = {name for session in self._forecast.sessions.latencies for name in session}
        shared = [subnet for subnet in (largest(space), smallest(space)) if subnet.id in known]
        self.measure(dict.fromkeys([*self.everyone, *shared]))
        found = {subnet.id: each.latency_ms for subnet, each in self._found.items()}
        self._forecast = self._forecast.after_session(found)

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
            if first not in sure and first in self._found:
                log.info(
                    "%s: SubNet %s takes the place of SubNet %s, which was measured at %.4g %s, with %.4g %s allowed",
                    *(name, best.id, first.id, self._found[first].latency_ms, unit, limit, unit),
                )
            return best
        best = max(self._tried[name], key=lambda subnet: self._outlook(subnet).probability(limit))
        if best in self._found:
            log.warning(
                "%s: of %d SubNets that were measured, none is sure to meet %.4g %s; SubNet %s is taken, at %.4g %s, "
                "which meets it again with a probability of %.0f %%: raise the budget, or lower search.confidence",
                *(name, len(self._tried[name]), limit, unit, best.id, self._found[best].latency_ms, unit),
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
            found = [self._found[subnet]] if subnet in self._found else []
            self._outlooks[subnet] = self._forecast.after(subnet, self._predicted(subnet), found)
        return self._outlooks[subnet]

    def _predicted(self, subnet: SubNet) -> float:
        if subnet not in self._costs:
            self._costs[subnet] = float(self._objectives.cost.predict(subnet.to_array())[0])
        return self._costs[subnet]

    def _measured(self, subnet: SubNet) -> tuple[float, float]:
        found = self._found.get(subnet)
        return (np.nan, np.nan) if found is None else (found.latency_ms, found.standard_error)


def remembered(time: Time, path: Path) -> Time:
    """The same measurement, which keeps what it has found in a file: an interrupted rule does not measure it again."""
    known = {key: Measurement(**each) for key, each in read_json(path)["found"].items()} if path.exists() else {}

    def measure(subnets: Sequence[SubNet]) -> Sequence[Measurement]:
        fresh = [subnet for subnet in subnets if subnet.id not in known]
        if fresh:
            known.update({each.key: each for each in time(fresh)})
            write_json(path, {"found": {key: vars(each) for key, each in known.items()}})
        return [known[subnet.id] for subnet in subnets]

    return measure
