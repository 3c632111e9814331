"""Where the standard errors of a run's metrics come from."""

from __future__ import annotations

from pathlib import Path

import autotailor
from autotailor.runs.metrics import accuracy_of


def test_an_accuracy_that_was_learnt_has_no_standard_error_from_the_drops(finished_run: Path) -> None:
    run = autotailor.open_run(finished_run)
    learnt = accuracy_of(run.predictions.accuracy, None, run.score)
    estimate = learnt.estimate(run.net.smallest())
    assert (estimate.standard_error, estimate.source.partition(":")[0]) == (None, "accuracy.json")
    assert "learnt from evaluated SubNets" in estimate.source
    assert estimate.value == run.predict("smallest").predicted["accuracy"].value
