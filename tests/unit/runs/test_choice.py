"""The SubNet of one more budget: what the run has measured and polished is used again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import autotailor
from autotailor.measurement.sessions import Timed
from autotailor.prediction import Measured
from autotailor.runs import Run, choice


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return autotailor.open_run(finished_run)


@pytest.fixture(scope="module")
def table(run: Run) -> pd.DataFrame:
    return pd.read_csv(run.folder.file("confirmed.csv"), dtype={"subnet": str}, float_precision="round_trip")


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is evaluated or trained again")


def choose(run: Run, limit_ms: float, work: Path, *, polish: bool) -> choice.Chosen:
    """A choice that needs no pictures, because everything is measured."""
    return choice.choose(run, limit_ms, None, work, polish=polish)  # type: ignore[arg-type]


def test_for_a_budget_of_the_run_the_best_of_its_candidates_keeps_the_shared_weights(
    run: Run, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", forbidden)
    monkeypatch.setattr(choice.polishing, "polish", forbidden)
    limit = float(table["budget_ms"].max())
    found = choose(run, limit, tmp_path, polish=False)
    best = table[(table["budget_ms"] == limit) & table["met"]].sort_values("accuracy_posterior").iloc[-1]
    assert (found.exported.subnet.id, found.exported.weights) == (best["subnet"], "inherited")
    assert (found.inherited, found.polished, found.race) == (best["accuracy_validation"], None, None)


def test_a_subnet_that_the_run_has_measured_above_the_budget_is_not_taken(
    finished_run: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", forbidden)
    limit, run = float(table["budget_ms"].max()), autotailor.open_run(finished_run)
    first = choose(run, limit, tmp_path, polish=False).exported.subnet
    slow = {first.id: [Timed(1.05 * limit, 0.001 * limit)]}
    monkeypatch.setitem(run.__dict__, "timings", {**run.timings, **slow})
    found = choose(run, limit, tmp_path, polish=False)
    assert found.exported.subnet != first
    assert found.confirmed is not None
    (row,) = found.confirmed[found.confirmed["subnet"] == first.id].to_dict("records")
    assert (row["met"], row["latency_ms_measured"]) == (False, slow[first.id][0].latency_ms)


def test_a_share_is_judged_by_what_subnets_took_of_the_largest_in_their_own_session(
    finished_run: Path, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of half the speed moves latencies, and no share; in milliseconds, the same SubNet would be refused."""
    monkeypatch.setattr(
        choice.sensitivity,
        "measure_accuracies",
        lambda net, data, subnets, *_: {subnet.id: Measured.alone(10.0, 0.5) for subnet in subnets},
    )
    run = autotailor.open_run(finished_run)
    row = table[table["met"]].sort_values("accuracy_posterior").iloc[-1]
    share = 1.1 * float(row["share_measured"])
    (timed,) = {each.share for each in run.timings[row["subnet"]]}
    assert timed == pytest.approx(row["share_measured"])
    slow = [replace(each, latency_ms=2 * each.latency_ms) for each in run.timings[row["subnet"]]]
    monkeypatch.setitem(run.__dict__, "timings", {**run.timings, row["subnet"]: slow})
    whole = run.forecast.judging(shares=True).whole
    assert whole is not None
    limit = share * whole.latency_ms
    found = choice.choose(run, limit, None, tmp_path, polish=False, share=share)  # type: ignore[arg-type]
    assert found.exported.subnet.id == row["subnet"]
    assert found.confirmed is not None
    assert set(found.confirmed["budget_share"]) == {share}
    assert choose(run, limit, tmp_path, polish=False).exported.subnet.id != row["subnet"]


def test_on_the_device_only_what_the_run_has_not_measured_is_measured(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is new is far too slow, so that a SubNet of the run is taken."""
    asked: list[str] = []

    def time(subnets: Any) -> list[Timed]:
        asked.extend(subnet.id for subnet in subnets)
        return [Timed(10.0, 0.01) for _ in subnets]

    monkeypatch.setattr(choice.confirmation, "timing", lambda *_: time)
    monkeypatch.setattr(
        choice.sensitivity,
        "measure_accuracies",
        lambda net, data, subnets, *_: {subnet.id: Measured.alone(99.0, 0.5) for subnet in subnets},
    )
    limit = 1.2 * max(run.tried.limits.values())
    found = choice.choose(run, limit, None, tmp_path, polish=False, device=run.device)  # type: ignore[arg-type]
    again = {run.subnets.find(name).id for name in ("largest", "smallest")}
    fresh = set(asked) - again
    assert again < set(asked), "what other sessions have measured tells how far sessions differ"
    assert fresh, "the budget has new candidates"
    assert not fresh & set(run.timings)
    assert found.exported.subnet.id in run.timings


def test_all_candidates_of_the_run_within_the_budget_race(
    run: Run, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contests = {}

    def race(net: Any, original: Any, data: Any, contest: Any, inherited: Any, *_: Any) -> Any:
        contests.update(contest)
        first = contest[choice.EXPORT][0]
        return {choice.EXPORT: choice.polishing.Polished(first, inherited[first.id])}, pd.DataFrame()

    def measure(net: Any, data: Any, subnets: Any, *_: Any) -> Any:
        assert not {subnet.id for subnet in subnets} & set(table["subnet"]), "the run has measured these"
        return {subnet.id: Measured.alone(10.0, 0.5) for subnet in subnets}

    monkeypatch.setattr(choice.polishing, "polish", race)
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", measure)
    found = choose(run, 1.2 * float(table["budget_ms"].max()), tmp_path, polish=True)
    racing = {subnet.id for subnet in contests[choice.EXPORT]}
    assert set(table["subnet"]) < racing
    assert set(table["subnet"]) - set(found.candidates["subnet"]), "some are candidates of other budgets alone"
    assert (found.exported.subnet, found.exported.weights) == (run.subnets.exported["budget_02"], "polished"), (
        "the run's polished export is better than the race's winner"
    )


def take(run: Run, which: str, work: Path, *, polish: bool) -> choice.Chosen:
    """A SubNet that needs no pictures, because evaluation and training are replaced."""
    return choice.take(run, run.subnets.find(which), None, work, polish=polish)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "weights"), [("budget_02", "polished"), ("largest", "inherited")])
def test_an_export_of_the_run_keeps_its_weights(
    name: str, weights: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", forbidden)
    monkeypatch.setattr(choice.polishing, "polish", forbidden)
    found = take(run, name, tmp_path, polish=True)
    assert (found.exported.subnet, found.exported.weights) == (run.subnets.exported[name], weights)


def test_another_subnet_is_evaluated_and_races_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The joint training before the race is that of the run, in one process as the race."""
    ids = {subnet.id for subnet in run.subnets.exported.values()}
    other = next(id_ for id_ in pd.read_csv(run.folder.file("pareto.csv"), dtype=str)["subnet"] if id_ not in ids)
    contests: dict[str, Any] = {}
    before: list[Any] = []

    def race(net: Any, original: Any, data: Any, contest: Any, inherited: Any, *_: Any, joint: Any) -> Any:
        contests.update(contest)
        before.append(joint)
        (subnet,) = contest[choice.EXPORT]
        weights = net.slice(subnet).weights
        return {
            choice.EXPORT: choice.polishing.Polished(subnet, inherited[subnet.id], 60.0, weights, 9)
        }, pd.DataFrame()

    def measure(net: Any, data: Any, subnets: Any, *_: Any) -> Any:
        return {subnet.id: Measured.alone(50.0, 0.5) for subnet in subnets}

    section: Any = run.configuration["polish"]
    for key, value in (("joint", {"epochs": 3}), ("processes", 2)):
        monkeypatch.setitem(section, key, value)
    monkeypatch.setattr(choice.polishing, "polish", race)
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", measure)
    polished = take(run, other, tmp_path, polish=True)
    assert [subnet.id for subnet in contests[choice.EXPORT]] == [other]
    assert [(joint.epochs, joint.world) for joint in before] == [(3, 1)]
    assert (polished.exported.weights, polished.inherited, polished.polished) == ("polished", 50.0, 60.0)
    contests.clear()
    inherited = take(run, other, tmp_path, polish=False)
    assert not contests
    assert (inherited.exported.weights, inherited.accuracy) == ("inherited", 50.0)
