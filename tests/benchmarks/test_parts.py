"""Parts are trained once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controls import parts
from controls.budgets import Contest
from controls.methods import Control, Methods
from controls.outcome import Outcome
from controls.start import Start

RIGHT = np.ones(40, np.bool_)


@pytest.fixture
def trained(run: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """The trainings that ran: the network and the learning rate; accuracy is highest at the first rate."""
    found: list[tuple[str, float]] = []
    subnet = run.net.smallest()
    monkeypatch.setattr(parts, "contests", lambda run: {50: Contest([subnet], {subnet.id: 50.0})})

    def train(self: Methods, control: Control, lr: float, workdir: Path) -> Outcome:
        found.append((control.what, lr))
        (workdir / "deep").mkdir(parents=True)
        return Outcome(-abs(lr - control.lr), RIGHT, control.what, 0.5)

    def polished(self: Methods, contest: Contest, start: Start, lr: float, workdir: Path) -> Outcome:
        found.append(("polished", lr))
        return Outcome(-abs(lr - run.polish.lr), RIGHT, "{}", 0.5)

    monkeypatch.setattr(Methods, "train", train)
    monkeypatch.setattr(Methods, "polished", polished)
    monkeypatch.setattr(Methods, "alone", lambda self, outcome: Control(lambda: None, "alone", 1, 8e-3))
    monkeypatch.setattr(Methods, "scaled", lambda self, outcome: Control(lambda: None, "scaled", 1, 8e-3))
    return found


def test_a_finished_part_is_read_and_not_made_again(
    run: Any, trained: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = (parts.ORIGINAL, parts.POLISHED, parts.ALONE, parts.SCALED)
    parts.train_missing(run, [50], methods)
    assert len(trained) == 3 * 3
    monkeypatch.delattr(Methods, "alone")
    monkeypatch.delattr(Methods, "scaled")
    parts.train_missing(run, [50], methods)
    assert len(trained) == 3 * 3
    found = {(part.method, part.budget): part.outcome for part in parts.finished(run, [50])}
    assert list(found) == [("original", 100), ("polished", 50), ("alone", 50), ("scaled", 50)]
    assert found["alone", 50].lr == pytest.approx(8e-3)
    assert len(found["alone", 50].tried) == 3


def test_a_killed_search_goes_on_with_the_rates_that_are_left(run: Any, trained: list[tuple[str, float]]) -> None:
    parts.train_missing(run, [50], (parts.ALONE,))
    parts.file_of(run, parts.ALONE, 50).unlink()
    last = max((run.parts / "alone_50").glob("lr_*.json"), key=lambda path: float(path.stem[3:]))
    last.unlink()
    before = len(trained)
    parts.train_missing(run, [50], (parts.ALONE,))
    assert trained[before:] == [("alone", pytest.approx(2.4e-2))]


def test_checkpoints_go_and_outcomes_stay(run: Any, trained: list[tuple[str, float]]) -> None:
    parts.train_missing(run, [50], (parts.ALONE,))
    left = sorted(path.suffix for path in (run.parts / "alone_50").iterdir())
    assert left == [".json"] * 3


def test_a_budget_that_no_subnet_reaches_is_left_out(run: Any, trained: list[tuple[str, float]]) -> None:
    parts.train_missing(run, [15, 50], (parts.INHERITED,))
    assert [(part.method, part.budget) for part in parts.finished(run, [15, 50])] == [("inherited", 50)]


def test_networks_are_matched_by_latency_where_budgets_are(
    run: Any, trained: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []

    def as_fast(self: Methods, outcome: Outcome, folder: Path) -> Control:
        folders.append(folder)
        return Control(lambda: None, "as fast", 1, 8e-3)

    monkeypatch.setattr(Methods, "scaled_as_fast", as_fast)
    parts.train_missing(run, [50], (parts.POLISHED, parts.SCALED_AS_FAST))
    assert not folders
    run.cost_name = "latency"
    parts.measure(run, [50], (parts.SCALED_AS_FAST,))
    assert ("as fast", 8e-3) not in trained
    parts.train_missing(run, [50], (parts.SCALED_AS_FAST,))
    assert folders == [run.parts / "latencies_of_scaled_50"] * 2
    assert ("as fast", 8e-3) in trained


def test_the_widest_network_of_a_budget_is_asked_for_with_the_budget(
    run: Any, trained: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def in_budget(self: Methods, outcome: Outcome, folder: Path, limit: float) -> Control:
        asked.append((folder, limit))
        return Control(lambda: None, "in budget", 1, 8e-3)

    monkeypatch.setattr(Methods, "scaled_in_budget", in_budget)
    run.cost_name = "latency"
    parts.train_missing(run, [50], (parts.POLISHED, parts.SCALED_IN_BUDGET))
    assert asked == [(run.parts / "latencies_of_scaled_50", 0.5)]
    assert ("in budget", 8e-3) in trained
