"""The SubNet that a person names: exports of the run keep their weights, and others race alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import autotailor
from autotailor.prediction import Measured
from autotailor.runs import Run, choice, named


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return autotailor.open_run(finished_run)


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is evaluated or trained again")


def take(run: Run, which: str, work: Path, *, polish: bool) -> choice.Chosen:
    """A SubNet that needs no pictures, because evaluation and training are replaced."""
    return named.take(run, run.subnets.find(which), None, work, polish=polish)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "weights"), [("budget_02", "polished"), ("largest", "inherited")])
def test_an_export_of_the_run_keeps_its_weights(
    name: str, weights: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", forbidden)
    monkeypatch.setattr(named.polishing, "polish", forbidden)
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
        return {choice.EXPORT: named.polishing.Polished(subnet, inherited[subnet.id], 60.0, weights, 9)}, pd.DataFrame()

    def measure(net: Any, data: Any, subnets: Any, *_: Any) -> Any:
        return {subnet.id: Measured.alone(50.0, 0.5) for subnet in subnets}

    section: Any = run.configuration["polish"]
    for key, value in (("joint", {"epochs": 3}), ("processes", 2)):
        monkeypatch.setitem(section, key, value)
    monkeypatch.setattr(named.polishing, "polish", race)
    monkeypatch.setattr(choice.sensitivity, "measure_accuracies", measure)
    polished = take(run, other, tmp_path, polish=True)
    assert [subnet.id for subnet in contests[choice.EXPORT]] == [other]
    assert [(joint.epochs, joint.world) for joint in before] == [(3, 1)]
    assert (polished.exported.weights, polished.inherited, polished.polished) == ("polished", 50.0, 60.0)
    contests.clear()
    inherited = take(run, other, tmp_path, polish=False)
    assert not contests
    assert (inherited.exported.weights, inherited.accuracy) == ("inherited", 50.0)
