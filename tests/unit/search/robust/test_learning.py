"""Budgets that are shares of the largest SubNet's latency: what moves all networks of a session alike cancels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import SubNet, largest, sample_distinct, stack
from autotailor.ir.space.variable import Space, Variable
from autotailor.measurement.sessions import Timed
from autotailor.search import LatencyForecast, SearchConfig, SearchError, read_forecast
from autotailor.search.robust.learning import SHARE_NOISE, USED

CONFIG = SearchConfig(confidence=0.95)
SPACE = Space(tuple(Variable(f"width_{number}", "width", (1, 2, 3), 2) for number in range(6)))
LATENCY = Metric("latency", "ms", SPACE, tuple(Term((v.name,), np.array([0.1, 0.3, 0.7])) for v in SPACE), 0.1)
WHOLE = largest(SPACE)


@dataclass(frozen=True)
class Device:
    """Its sessions differ by a common factor, and each network in a session by one of its own.

    Attributes:
        random: of the sessions.
        common: standard deviation of the logarithm of the common factor.
        own: that of a network's own factor.
        truth: logarithm of each SubNet's latency in the long run.
    """

    random: np.random.Generator
    common: float
    own: float
    truth: dict[SubNet, float]

    @classmethod
    def made(cls, seed: int, common: float, own: float) -> Device:
        random = np.random.default_rng(seed)
        subnets = [WHOLE, *(s for s in sample_distinct(SPACE, 40, random) if s != WHOLE)]
        logs = np.log(LATENCY.predict(stack(subnets)))
        truth = 0.05 + 1.03 * logs + random.normal(0, 0.015, len(subnets))
        return cls(random, common, own, dict(zip(subnets, truth, strict=True)))

    def rounds(self, subnets: list[SubNet], count: int) -> np.ndarray:
        """Latencies ``[count, subnets]`` of one session, whose rounds differ by a tenth of what sessions do."""
        logs = np.array([self.truth[subnet] for subnet in subnets])
        session = self.random.normal(0, self.common) + self.random.normal(0, self.own, len(subnets))
        drift = self.random.normal(0, self.common / 2, (count, 1))
        return np.exp(logs + session + drift + self.random.normal(0, self.own / 2, (count, len(subnets))))

    def validation(self, subnets: list[SubNet]) -> pd.DataFrame:
        rounds = self.rounds(subnets, 5)
        logs, mean = np.log(rounds), rounds.mean(0)
        columns = (
            LATENCY.predict(stack(subnets)),
            mean,
            np.abs(rounds[-1] - rounds[0]) / mean,
            np.full(len(mean), 0.01),
        )
        named = dict(zip(USED, columns, strict=True))
        noise = np.std(logs - logs[:, [subnets.index(WHOLE)]], axis=0, ddof=1)
        return pd.DataFrame({"subnet": [s.id for s in subnets], **named, SHARE_NOISE: noise})

    def session(self, subnets: list[SubNet]) -> dict[str, Timed]:
        rounds = self.rounds(subnets, 3)
        shares = rounds / rounds[:, [subnets.index(WHOLE)]]
        errors = (np.std(values, axis=0, ddof=1) / np.sqrt(3) for values in (rounds, shares))
        columns = zip(rounds.mean(0), next(errors), shares.mean(0), next(errors), strict=True)
        return {s.id: Timed(*map(float, values)) for s, values in zip(subnets, columns, strict=True)}


def learnt(table: pd.DataFrame, folder: Path) -> LatencyForecast:
    table.to_csv(folder / "validation.csv", index=False)
    return read_forecast(folder / "validation.csv", CONFIG, latency=LATENCY)


def upper_share(found: LatencyForecast, subnet: SubNet, *timings: Timed) -> float:
    """The share that a SubNet keeps with the confidence."""
    shares = found.judging(shares=True)
    assert shares.whole is not None
    predicted = float(LATENCY.predict(subnet.to_array())[0])
    return shares.after(subnet, predicted, timings).quantile(0.95) / shares.whole.latency_ms


@pytest.mark.parametrize(
    ("common", "own", "least"),
    [
        pytest.param(0.1, 0.003, 0.96, id="drifts, and networks follow alike"),
        pytest.param(0.0, 0.012, 0.93, id="no drift, but networks of their own"),
        pytest.param(0.1, 0.012, 0.93, id="both"),
    ],
)
def test_shares_hold_in_a_later_session_however_far_sessions_are_apart(
    tmp_path: Path, common: float, own: float, least: float
) -> None:
    """On each of 200 devices 20 SubNets are validated, and two others are measured with five of these once more."""
    before, after, used, used_ms = [], [], [], []
    for seed in range(200):
        device = Device.made(seed, common, own)
        subnets = list(device.truth)
        found = learnt(device.validation(subnets[:20]), tmp_path)
        second = device.session([*subnets[:5], *subnets[20:22]])
        again = found.after_session(second)
        later = device.session([WHOLE, *subnets[20:22]])
        for subnet in subnets[20:22]:
            share, upper = later[subnet.id].share, upper_share(again, subnet, second[subnet.id])
            before.append(share <= upper_share(found, subnet))
            after.append(share <= upper)
            used.append(share / upper)
            predicted = float(LATENCY.predict(subnet.to_array())[0])
            in_ms = again.after(subnet, predicted, [second[subnet.id]]).quantile(0.95)
            used_ms.append(share * again.expected(float(LATENCY.predict(WHOLE.to_array())[0])) / in_ms)
    assert min(np.mean(before), np.mean(after)) >= least
    assert np.mean(used) > 0.94
    if common:
        assert np.mean(used_ms) < np.mean(used) - 0.05, "milliseconds need room for what moves all networks"


def test_a_common_factor_moves_no_share(tmp_path: Path) -> None:
    """The whole session of the validation, or of a later measurement, may be slower by any factor."""
    device = Device.made(0, 0.02, 0.005)
    subnets = list(device.truth)
    table, second = device.validation(subnets[:20]), device.session([*subnets[:5], subnets[20]])
    slow = table.assign(measured_ms=1.7 * table["measured_ms"])
    drifted = {
        name: Timed(3 * t.latency_ms, 3 * t.standard_error, t.share, t.share_error) for name, t in second.items()
    }
    timings = second[subnets[20].id], drifted[subnets[20].id]
    first = learnt(table, tmp_path).after_session(second)
    other = learnt(slow, tmp_path).after_session(drifted)
    assert upper_share(first, subnets[20]) == pytest.approx(upper_share(other, subnets[20]), rel=1e-12)
    expected = upper_share(first, subnets[20], timings[0])
    assert expected == pytest.approx(upper_share(other, subnets[20], timings[1]), rel=1e-12)
    assert other.sessions.variance.value > 10 * first.sessions.variance.value


def test_the_forecast_of_shares_is_the_regression_of_the_ratios(tmp_path: Path) -> None:
    """Without noise that the prior must temper, the median is what least squares say of the ratios."""
    device = Device.made(1, 0.0, 0.0)
    subnets = list(device.truth)
    table = device.validation(subnets)
    shares = learnt(table, tmp_path).judging(shares=True)
    ratios, predicted = (table[name] / table[name].iloc[0] for name in ("measured_ms", "predicted_ms"))
    x, y = np.log(predicted[1:]), np.log(ratios[1:] / predicted[1:])
    away = x - x.mean()
    slope = float((away * y).sum() / ((away**2).sum() + 1.0))
    assert shares.whole is not None
    for subnet, log in zip(subnets[1:4], x[:3], strict=True):
        own = float(LATENCY.predict(subnet.to_array())[0])
        share = shares.of(subnet, own).median_ms / shares.whole.latency_ms
        assert math.log(share) == pytest.approx(log + y.mean() + slope * (log - x.mean()))


def test_the_largest_subnet_takes_all_of_its_own_latency_and_meets_a_budget_of_it(tmp_path: Path) -> None:
    device = Device.made(2, 0.1, 0.01)
    shares = learnt(device.validation(list(device.truth)), tmp_path).judging(shares=True)
    assert shares.whole is not None
    whole_ms, predicted = shares.whole.latency_ms, float(LATENCY.predict(WHOLE.to_array())[0])
    assert shares.of(WHOLE, predicted).quantile(0.99) == whole_ms
    assert shares.limit(whole_ms) >= predicted
    limits = [shares.limit(share * whole_ms) for share in np.linspace(0.2, 1.2, 60)]
    assert (np.diff(limits) >= 0).all()
    for share in (0.3, 0.6, 0.99):
        upper = shares.of(list(device.truth)[5], shares.limit(share * whole_ms)).quantile(0.95)
        assert upper == pytest.approx(share * whole_ms)


def test_a_table_of_an_earlier_version_counts_ratios_as_noisy_as_latencies(tmp_path: Path) -> None:
    device = Device.made(3, 0.1, 0.003)
    table = device.validation(list(device.truth))
    new, old = (learnt(each, tmp_path) for each in (table, table.drop(columns=SHARE_NOISE)))
    assert old.judging(shares=True).noise == old.noise == new.noise
    assert new.judging(shares=True).noise < new.noise / 3


def test_without_a_validation_shares_have_the_usual_spread(tmp_path: Path) -> None:
    found = learnt(pd.DataFrame(columns=["subnet", *USED]), tmp_path)
    assert found.judging(shares=True).limit(1.0) == found.limit(1.0)


def test_a_table_without_the_largest_subnet_is_refused(tmp_path: Path) -> None:
    table = Device.made(4, 0.1, 0.01).validation([*Device.made(4, 0.1, 0.01).truth]).iloc[1:]
    with pytest.raises(SearchError, match=r"the largest SubNet among the measured ones.*run the rule validate"):
        learnt(table, tmp_path)
