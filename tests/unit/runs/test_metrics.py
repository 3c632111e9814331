"""Where the standard errors of a run's metrics come from."""

from pathlib import Path

import numpy as np
import pytest

import autotailor
from autotailor.ir.space.subnet import sample_distinct
from autotailor.ir.space.variable import Modification
from autotailor.prediction import Accuracy, ModelError, Outcome, Outcomes, fit
from autotailor.runs.metrics import accuracy_of


def test_an_accuracy_that_was_learnt_has_the_standard_error_of_the_model(finished_run: Path) -> None:
    run = autotailor.open_run(finished_run)
    net, random = run.net, np.random.default_rng(0)
    singles = [net.largest().transform(Modification(v.name, c)) for v in net.space for c in v.choices]
    subnets = [net.largest(), *singles, *sample_distinct(net.space, 10, random)]
    found = {s.id: Outcome(random.random(200) < 0.9, random.random(200).astype(np.float32)) for s in subnets}
    model = fit(Outcomes.of(net.space, subnets, found, np.arange(200)), net.macs())
    learnt = accuracy_of(Accuracy.learnt(model), run.score)
    estimate = learnt.estimate(net.smallest())
    assert isinstance(learnt.error, ModelError)
    assert estimate.standard_error == pytest.approx(model.metric_errors(net.smallest().to_array())[0])
    assert estimate.standard_error > 0
    assert estimate.source.startswith("accuracy.json: accuracy learnt from evaluated SubNets")


def test_an_accuracy_without_errors_says_why(finished_run: Path) -> None:
    run = autotailor.open_run(finished_run)
    estimate = accuracy_of(Accuracy(run.predictions.accuracy, None), run.score).estimate(run.net.smallest())
    assert estimate.standard_error is None
    assert "before standard errors were kept" in estimate.source
    assert estimate.value == run.predict("smallest").predicted["accuracy"].value
