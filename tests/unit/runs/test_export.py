"""One more export from a finished run, without its device."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import autotailor
from autotailor.ir.space.subnet import largest, smallest
from autotailor.runs import Run, RunError, choice
from autotailor.runs.export import Asked, _words
from autotailor.runs.known_metric import Estimate
from autotailor.search import SearchError

FILES = {
    "candidates.csv", "confirmed.csv", "export.json", "model.ncnn.bin", "model.ncnn.param", "model.onnx", "model.pt2",
    "subnet.json", "summary.csv", "verification.json", "README.md",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return autotailor.open_run(finished_run)


def test_the_largest_subnet_keeps_all_of_its_latency_and_counts_are_kept_to_the_rounding(run: Run) -> None:
    """It is timed twice, as the export and as the original network."""
    space = run.net.space
    assert Asked(1.0, share=1.0).is_met(largest(space), 1.004, 1.0)
    assert not Asked(1.0, share=1.0).is_met(smallest(space), 1.004, 1.0)
    assert not Asked(1.0, share=0.5).is_met(largest(space), 1.004, 1.0)
    assert not Asked(1.0).is_met(largest(space), 1.004, 1.0)
    assert Asked(1.11872).is_met(smallest(space), 1.1187200000000002, 1.11872)


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("nothing is evaluated or trained again")


def interrupted(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interrupted_export_goes_on_and_writes_what_a_run_would(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted before the race; the candidates that it has measured are not measured again."""
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in run.folder.path.parent.rglob("*")}
    with monkeypatch.context() as patch:
        patch.setattr(choice.polishing, "polish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.export("80%", "extra", measure=False)
    journal = tmp_path / "extra" / ".work" / "candidates.jsonl"
    measured = journal.read_text() if journal.exists() else ""
    with monkeypatch.context() as patch:
        patch.setattr("autotailor.accuracy.journal.Journal.add", forbidden)
        found = run.export("80%", "extra", measure=False)
    assert measured, "the budget has candidates that the run has not measured"
    assert {path.name for path in found.folder.iterdir()} == {*FILES, "polish.csv"}
    assert found.folder == tmp_path / "extra"
    assert found.predicted["latency"].value <= found.budget
    assert found.budget == pytest.approx(0.8 * run.predict("largest").predicted["latency"].value), (
        "a share is one of the latency that the largest SubNet is expected to have when it is measured"
    )
    assert json.loads((found.folder / "verification.json").read_text())["passed"]
    summary = pd.read_csv(found.folder / "summary.csv").set_index("name")
    assert list(summary.index) == ["export", "original"]
    assert summary.loc["export", "weights"] == found.weights
    assert np.isnan(summary.loc["export", "latency_ms_measured"])
    assert (set(found.measured), found.meets_budget) == ({"accuracy"}, None)
    assert f"a budget of {found.budget:.4g} ms (asked for: 80%). Whether" in (found.folder / "README.md").read_text()
    assert found.measured["accuracy"].value == summary.loc["export", "accuracy_measured"]
    assert {path: path.stat().st_mtime_ns for path in run.folder.path.parent.rglob("*")} == before


@pytest.mark.parametrize("budget", ["1%", 1e-6])
def test_a_budget_that_nothing_meets_makes_no_folder(budget: float | str, run: Run, tmp_path: Path) -> None:
    with pytest.raises(SearchError, match="every SubNet of this space has latency of at least"):
        run.export(budget, tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_limits_that_no_subnet_keeps_are_told_as_they_were_asked_for(run: Run) -> None:
    budget = {"latency": "20%", "peak_memory": 0.2, "parameters": 1}
    assert _words(run, budget) == "latency 20%, peak_memory 0.2 MiB, parameters 1 M"
    assert (_words(run, "30/s"), _words(run, 0.25)) == ("30/s", "0.25 ms")


def test_a_share_is_one_of_the_original_that_was_measured_beside_the_export() -> None:
    assert Asked(3.0, share=0.6).now(Estimate(10.0, "ms", None, "summary.csv")) == 6.0
    assert Asked(3.0, share=0.6).now(None) == 3.0
    assert Asked(3.0).now(Estimate(10.0, "ms", None, "summary.csv")) == 3.0
    assert Asked().now(None) is None


def test_pictures_that_have_changed_are_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotailor.data.fingerprint", lambda section: "other pictures")
    with pytest.raises(RunError, match="data digits: the pictures are not those of the run"):
        run.export("50%", tmp_path / "new", measure=False)
