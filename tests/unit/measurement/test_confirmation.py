"""Candidates that are measured before they are polished, on a device whose latencies are made up."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import autotailor
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import SubNet, largest, sample_distinct, smallest
from autotailor.measurement import confirmation
from autotailor.measurement.confirmation import Confirmation, confirm, remembered
from autotailor.measurement.sessions import Timed
from autotailor.measurement.trial import MEASURED
from autotailor.prediction import Measured
from autotailor.profiling import DeviceConfig, Measurement
from autotailor.search import (
    LATENCY,
    Candidates,
    Front,
    LatencyForecast,
    Objectives,
    SearchConfig,
    budget_shares,
    choose,
    exact_front,
    read_candidates,
)
from autotailor.search.choice import columns
from autotailor.search.joint.limits import Limits
from autotailor.search.robust.forecast import Sessions, Whole
from autotailor.work import Work

FORECAST = LatencyForecast(0.95, spread=0.03, noise=0.005, degrees=20.0)
CONFIG = SearchConfig(candidates=3)


class Device:
    """Measures each SubNet at its prediction times a factor; remembers what it was asked for."""

    def __init__(self, objectives: Objectives, factor: Callable[[SubNet], float]) -> None:
        self.objectives, self.factor, self.asked = objectives, factor, []

    def latency(self, subnet: SubNet) -> float:
        return float(self.objectives.cost.predict(subnet.to_array())[0]) * self.factor(subnet)

    def __call__(self, subnets: Sequence[SubNet]) -> list[Timed]:
        self.asked.append(list(subnets))
        whole = self.latency(largest(self.objectives.space))
        costs = [self.latency(subnet) for subnet in subnets]
        return [Timed(ms, 0.001 * ms, ms / whole, 0.001 * ms / whole) for ms in costs]


@pytest.fixture(scope="module")
def objectives(resnet_net: autotailor.SuperNet) -> Objectives:
    random = np.random.default_rng(0)
    drops = [
        Term((v.name,), -random.exponential() * np.abs(np.arange(len(v.choices)) - v.default), v.gate)
        for v in resnet_net.space
    ]
    macs = resnet_net.macs()
    return Objectives(
        Metric("accuracy", "%", resnet_net.space, tuple(drops), 95.0),
        Metric("latency", "ms", resnet_net.space, macs.terms, macs.constant),
    )


@pytest.fixture(scope="module")
def front(objectives: Objectives) -> Front:
    return exact_front(objectives).front


def measure(subnets: Sequence[SubNet]) -> dict[str, Measured]:
    return {subnet.id: Measured.alone(50.0, 1.0) for subnet in subnets}


@pytest.fixture(scope="module")
def candidates(objectives: Objectives, front: Front, tmp_path_factory: pytest.TempPathFactory) -> Candidates:
    """Of two budgets, as the rule search writes them."""

    def predicted(subnets: Sequence[SubNet]) -> dict[str, Measured]:
        return {s.id: Measured.alone(float(objectives.accuracy.predict(s.to_array())[0]), 1.0) for s in subnets}

    path = tmp_path_factory.mktemp("search") / "candidates.csv"
    choose(objectives, front, ["60%", "80%"], predicted, CONFIG, FORECAST).write(path)
    return read_candidates(path, objectives.space)


def chosen_by_search(candidates: Candidates, name: str) -> SubNet:
    return max(candidates.contests[name], key=lambda subnet: candidates.accuracies[subnet.id].posterior)


def candidates_of(candidates: Candidates) -> list[SubNet]:
    return [subnet for subnets in candidates.contests.values() for subnet in subnets]


def row_of(found: Confirmation, name: str, subnet: SubNet) -> pd.Series:
    (row,) = found.table[(found.table["budget"] == name) & (found.table["subnet"] == subnet.id)].to_dict("records")
    return row


def test_where_the_device_keeps_its_promise_the_choice_of_the_search_stays(
    objectives: Objectives, front: Front, candidates: Candidates, tmp_path: Path
) -> None:
    device = Device(objectives, lambda _: 1.0)
    found = confirm(objectives, front, candidates, FORECAST, device, measure, 3)
    assert found.subnets == {name: chosen_by_search(candidates, name) for name in candidates.limits}
    assert len(device.asked) == 1, "nothing more is measured"
    assert sorted(s.id for s in device.asked[0]) == sorted(candidates.accuracies)
    assert list(found.table.columns) == [*columns(LATENCY), *MEASURED]
    found.write(tmp_path / "confirmed.csv")
    again = read_candidates(tmp_path / "confirmed.csv", objectives.space)
    assert {n: set(s) for n, s in again.contests.items()} == {n: set(s) for n, s in candidates.contests.items()}
    assert again.limits == candidates.limits


@pytest.mark.parametrize(("factor", "is_taken"), [(0.99, True), (1.03, False)])
def test_a_subnet_that_meets_its_budget_only_perhaps_is_measured_and_taken_where_it_does(
    objectives: Objectives, front: Front, candidates: Candidates, factor: float, is_taken: bool
) -> None:
    """What is measured at 1.03 times its prediction is above the budget, which the search's choice keeps well."""

    def predicted(subnets: Sequence[SubNet]) -> dict[str, Measured]:
        return {s.id: Measured.alone(float(objectives.accuracy.predict(s.to_array())[0]), 1.0) for s in subnets}

    found = confirm(
        objectives, front, candidates, FORECAST, Device(objectives, lambda _: factor), predicted, 0, bolder=(0.5,)
    )
    for name, limit in candidates.limits.items():
        chosen, before = found.subnets[name], chosen_by_search(candidates, name)
        assert (chosen == front.at(limit)) is is_taken
        assert (chosen == before) is not is_taken
        assert row_of(found, name, front.at(limit))["met"] == is_taken


def of_both_kinds(objectives: Objectives) -> LatencyForecast:
    """Of a restless device: sessions differ by much, but all SubNets of a session alike."""
    whole = largest(objectives.space)
    predicted = float(objectives.cost.predict(whole.to_array())[0])
    sessions = Sessions(0.015, ({whole.id: predicted},))
    shares = replace(FORECAST, whole=Whole(whole, predicted, predicted))
    return replace(FORECAST, noise=0.05, sessions=sessions, shares=shares)


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.8])
def test_budgets_that_are_shares_are_judged_within_the_session(
    objectives: Objectives, front: Front, candidates: Candidates, factor: float, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole session is slower than that of the search: the shares, and so the choice, are the same."""
    device = Device(objectives, lambda _: factor)
    shares = budget_shares(["60%", "80%"], "latency")
    again = (largest(objectives.space),)
    forecast = of_both_kinds(objectives)
    found = confirm(objectives, front, candidates, forecast, device, measure, 3, again=again, shares=shares)
    assert found.subnets == {name: chosen_by_search(candidates, name) for name in candidates.limits}
    assert len(device.asked) == 1
    table = found.table.groupby("budget").first()
    for name, limit in candidates.limits.items():
        assert table["budget_share"][name] == shares[name]
        assert table["budget_ms"][name] == pytest.approx(factor * limit)
        row = row_of(found, name, found.subnets[name])
        assert row["share_measured"] * factor * table["budget_ms"][name] == pytest.approx(
            row["latency_ms_measured"] * factor * table["budget_share"][name]
        )
        assert row["probability"] > 0.95
    assert not caplog.text


def test_a_budget_in_milliseconds_keeps_its_margin_beside_one_that_is_a_share(
    objectives: Objectives, front: Front, candidates: Candidates
) -> None:
    """What a session adds to the noise counts for milliseconds alone."""
    device, again = Device(objectives, lambda _: 1.0), (largest(objectives.space),)
    shares = budget_shares(["60%", 1.0], "latency")
    found = confirm(
        objectives, front, candidates, of_both_kinds(objectives), device, measure, 0, again=again, shares=shares
    )
    table = found.table.set_index("budget")
    assert table["budget_share"].isna().tolist() == [name == "budget_02" for name in table.index]
    upper = (table["upper_ms"] / table["latency_ms_predicted"]).groupby("budget").max()
    whole = float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    shared = (table["upper_share"] * whole / table["latency_ms_predicted"]).groupby("budget").max()
    assert (shared < upper - 0.03).all()
    both = budget_shares(["60%", "80%"], "latency")
    other = confirm(
        objectives, front, candidates, of_both_kinds(objectives), device, measure, 0, again=again, shares=both
    )
    chosen = chosen_by_search(candidates, "budget_02")
    sure, unsure = (row_of(each, "budget_02", chosen)["probability"] for each in (other, found))
    assert unsure < sure


def test_a_subnet_that_was_measured_within_its_budget_is_replaced_with_the_reason(
    objectives: Objectives, front: Front, candidates: Candidates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    first = chosen_by_search(candidates, "budget_01")
    predicted = float(objectives.cost.predict(first.to_array())[0])
    scarce = 0.999 * candidates.limits["budget_01"] / predicted
    device = Device(objectives, lambda subnet: scarce if subnet == first else 0.9)
    found = confirm(objectives, front, candidates, FORECAST, device, measure, 3)
    row = row_of(found, "budget_01", first)
    assert row["latency_ms_measured"] < candidates.limits["budget_01"]
    assert 0.5 < row["probability"] < 0.95
    said = f"takes the place of SubNet {first.id}, which was measured at {row['latency_ms_measured']:.4g} ms"
    assert said in caplog.text
    assert f"again with a probability of {100 * row['probability']:.1f} %, where 95 % are asked for" in caplog.text


def test_messages_name_a_share_as_one(
    objectives: Objectives, front: Front, candidates: Candidates, caplog: pytest.LogCaptureFixture
) -> None:
    whole = largest(objectives.space)
    device = Device(objectives, lambda subnet: 1.0 if subnet == whole else 100.0)
    shares = budget_shares(["60%", "80%"], "latency")
    confirm(objectives, front, candidates, of_both_kinds(objectives), device, measure, 0, shares=shares)
    assert "none is sure to meet 60 % of the largest SubNet's latency; SubNet" in caplog.text


def test_the_largest_subnet_is_in_every_batch_and_shares_are_those_of_the_same_rounds(
    resnet_net: autotailor.SuperNet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The machine changes its speed from round to round, and from batch to batch."""
    space, speeds = resnet_net.space, iter([1.0, 1.3, 0.8, 2.0, 1.7, 2.4])
    batches: list[list[SubNet]] = []

    def rounds(net: object, subnets: Sequence[SubNet], *_: object, **options: object) -> list[list[Measurement]]:
        batches.append(list(subnets))
        found = []
        for speed in (next(speeds) for _ in range(3)):
            latencies = {s.id: speed * (4.0 if s == largest(space) else 1.0) for s in subnets}
            found.append([Measurement(name, ms, 0.01, 9, ms) for name, ms in latencies.items()])
        return found

    monkeypatch.setattr(confirmation, "measure_subnets", rounds)
    subnets = sample_distinct(space, 40, np.random.default_rng(0))
    subnets = [subnet for subnet in subnets if subnet != largest(space)]
    time = confirmation.timing(resnet_net, DeviceConfig("host"), None, confirmation.ConfirmEffort(), tmp_path)  # type: ignore[arg-type]
    found = time([*subnets, largest(space)])
    assert [batch[0] for batch in batches] == [largest(space)] * 2
    assert [len(batch) for batch in batches] == [32, len(subnets) - 31 + 1]
    assert [each.share for each in found] == pytest.approx([0.25] * len(subnets) + [1.0])
    assert [each.share_error for each in found] == pytest.approx([0.0] * len(found), abs=1e-12)
    assert found[0].standard_error > 0.1


def test_a_rule_that_is_interrupted_does_not_measure_again_and_one_that_has_finished_does(
    resnet_net: autotailor.SuperNet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever forces the rule to run again, on a machine that is quiet by now, wants latencies of now."""
    measured: list[Sequence[SubNet]] = []

    def rounds(_: object, subnets: Sequence[SubNet], *args: object, **options: object) -> list[list[Measurement]]:
        measured.append(subnets)
        return [[Measurement(subnet.id, 2.0, 0.1, 5, 2.0) for subnet in subnets]] * 2

    monkeypatch.setattr(confirmation, "measure_subnets", rounds)
    work = Work.of(tmp_path, "confirm", ("net", "host"), {"seed": 1}, {}, is_training=False)
    for times, is_over in ((1, False), (1, True), (2, False)):
        work.begin()
        device = DeviceConfig("host"), None, confirmation.ConfirmEffort(), work.folder
        confirmation.timing(resnet_net, *device)([resnet_net.largest()])  # type: ignore[arg-type]
        assert len(measured) == times
        if is_over:
            work.finish()


def test_the_next_candidate_takes_the_place_of_one_that_misses(
    objectives: Objectives, front: Front, candidates: Candidates, tmp_path: Path
) -> None:
    missing = chosen_by_search(candidates, "budget_02")
    device = Device(objectives, lambda subnet: 1.5 if subnet == missing else 1.0)
    found = confirm(objectives, front, candidates, FORECAST, device, measure, 3)
    assert len(device.asked) == 1
    others = [s for s in candidates.contests["budget_02"] if s != missing]
    assert found.subnets["budget_02"] == max(others, key=lambda s: candidates.accuracies[s.id].posterior)
    row = row_of(found, "budget_02", missing)
    assert row["latency_ms_measured"] > row["budget_ms"]
    assert (row["met"], row["chosen"]) == (False, False)
    assert row["probability"] < 0.01
    found.write(tmp_path / "confirmed.csv")
    assert missing not in read_candidates(tmp_path / "confirmed.csv", objectives.space).contests["budget_02"]


def test_where_all_candidates_miss_further_subnets_of_the_front_are_measured(
    objectives: Objectives, front: Front, candidates: Candidates
) -> None:
    """Everything is 15 % slower than predicted: the next SubNet is the one that this factor asks for."""
    device = Device(objectives, lambda _: 1.15)
    found = confirm(objectives, front, candidates, FORECAST, device, measure, 4)
    for name, limit in candidates.limits.items():
        row = row_of(found, name, found.subnets[name])
        assert row["met"]
        assert row["latency_ms_measured"] <= limit
        fits = front.cost * 1.15 <= limit
        best = front.accuracy[fits].max()
        assert row["accuracy_predicted"] >= best - 1.0, "it is hardly less accurate than the best that meets the budget"
    late = {s.id for batch in device.asked[1:] for s in batch}
    assert 1 <= len(late) <= 4
    assert set(found.table.loc[found.table["subnet"].isin(late), "accuracy_validation"]) == {50.0}


def test_where_nothing_meets_a_budget_the_fastest_is_taken_and_a_warning_says_so(
    objectives: Objectives, front: Front, candidates: Candidates, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    device = Device(objectives, lambda _: 1000.0)
    found = confirm(objectives, front, candidates, FORECAST, device, measure, 3)
    fastest = SubNet.from_array(front.space, front.indices[0])
    assert set(found.subnets.values()) == {fastest}
    assert not found.table["met"].any()
    assert "budget_01: of" in caplog.text
    assert "none is sure to meet" in caplog.text
    assert "0 of 2 budgets" in found.verdict()
    assert len(device.asked) <= 4
    found.write(tmp_path / "confirmed.csv")
    contests = read_candidates(tmp_path / "confirmed.csv", objectives.space).contests
    assert contests == {"budget_01": [fastest], "budget_02": [fastest]}


def test_the_last_attempt_is_the_fastest_subnet_while_nothing_meets_the_budget(
    objectives: Objectives, front: Front, candidates: Candidates
) -> None:
    contests = {name: [chosen_by_search(candidates, name)] for name in candidates.limits}
    alone, device = Candidates(candidates.limits, contests, candidates.accuracies), Device(objectives, lambda _: 1.6)
    confirm(objectives, front, alone, FORECAST, device, measure, 1)
    assert device.asked[1:] == [[SubNet.from_array(front.space, front.indices[0])]]


def test_without_a_device_candidates_are_passed_on(
    objectives: Objectives, front: Front, candidates: Candidates, tmp_path: Path
) -> None:
    found = confirm(objectives, front, candidates, FORECAST, None, measure, 3)
    assert found.table["latency_ms_measured"].isna().all()
    found.write(tmp_path / "confirmed.csv")
    again = read_candidates(tmp_path / "confirmed.csv", objectives.space)
    assert {n: set(s) for n, s in again.contests.items()} == {n: set(s) for n, s in candidates.contests.items()}
    assert found.subnets == {name: chosen_by_search(candidates, name) for name in candidates.limits}


def test_further_subnets_keep_the_limits_beside_the_budget(
    objectives: Objectives, front: Front, candidates: Candidates, resnet_net: autotailor.SuperNet
) -> None:
    metric = resnet_net.parameters()
    value = 0.9 * float(np.median(metric.predict(front.indices)))
    beside = dict.fromkeys(candidates.limits, Limits(("parameters",), (metric,), (value,)))
    contests = {
        name: [s for s in subnets if beside[name].allow(s) or s == chosen_by_search(candidates, name)]
        for name, subnets in candidates.contests.items()
    }
    kept = Candidates(candidates.limits, contests, candidates.accuracies)
    device = Device(objectives, lambda _: 1.6)
    confirm(objectives, front, kept, FORECAST, device, measure, 3, beside)
    late = [subnet for batch in device.asked[1:] for subnet in batch]
    assert late
    assert all(beside["budget_01"].allow(subnet) for subnet in late)
    assert not confirm(objectives, front, kept, FORECAST, device, measure, 0, beside).table.empty


def test_what_was_measured_is_not_measured_again(objectives: Objectives, tmp_path: Path) -> None:
    device, one = Device(objectives, lambda _: 1.0), largest(objectives.space)
    first = remembered(device, tmp_path / "latencies.json")([one])
    assert remembered(device, tmp_path / "latencies.json")([one]) == first
    assert device.asked == [[one]]


def test_what_another_session_has_measured_is_measured_along_and_tells_how_far_sessions_differ(
    objectives: Objectives, front: Front, candidates: Candidates
) -> None:
    """The largest SubNet is now 20 % faster than when it was validated, so that no single measurement is a promise."""
    space = objectives.space
    both = {s.id: float(objectives.cost.predict(s.to_array())[0]) for s in (largest(space), smallest(space))}
    chosen = confirm(objectives, front, candidates, FORECAST, Device(objectives, lambda _: 1.0), measure, 0)
    probabilities = []
    for factor in (1.0, 1.25):
        device = Device(objectives, lambda _: 1.0)
        sessions = Sessions(0.015).joined({name: factor * ms for name, ms in both.items()})
        forecast, again = replace(FORECAST, sessions=sessions), (largest(space), smallest(space), *front.subnets[3:5])
        found = confirm(objectives, front, candidates, forecast, device, measure, 0, again=again)
        assert set(device.asked[0]) == {*candidates_of(candidates), *again[:2]}, "others are new"
        assert set(found.table["subnet"]) == set(chosen.table["subnet"])
        probabilities.append(row_of(found, "budget_01", chosen.subnets["budget_01"])["probability"])
    alike = row_of(chosen, "budget_01", chosen.subnets["budget_01"])["probability"]
    assert alike > probabilities[0] > probabilities[1] > 0.5
