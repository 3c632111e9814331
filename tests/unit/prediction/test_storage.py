"""Files of evaluations and metrics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.artifacts import read_json, write_json
from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction import PredictionError, fit
from autotailor.prediction.storage import COLUMNS, read_metric, read_outcomes, write_metric, write_outcomes


@pytest.fixture(scope="module")
def outcomes(world):
    return world.outcomes(5)


def test_evaluations_are_read_as_they_were_written(world, outcomes, tmp_path: Path) -> None:
    write_outcomes(tmp_path / "e.csv", outcomes)
    found = read_outcomes(tmp_path / "e.csv", world.net.space, world.groups)
    assert found.subnets == outcomes.subnets
    np.testing.assert_array_equal(found.right, outcomes.right)
    np.testing.assert_array_equal(found.reference, outcomes.reference)
    table = pd.read_csv(tmp_path / "e.csv")
    assert tuple(table.columns) == COLUMNS
    assert table.accuracy[0] == pytest.approx(100 * outcomes.reference.mean())


def test_evaluations_that_do_not_fit_are_refused(world, outcomes, tmp_path: Path) -> None:
    write_outcomes(tmp_path / "e.csv", outcomes)
    with pytest.raises(PredictionError, match="each of 80 images"):
        read_outcomes(tmp_path / "e.csv", world.net.space, np.arange(80))
    table = pd.read_csv(tmp_path / "e.csv")
    table.drop(columns="right").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(PredictionError, match="right"):
        read_outcomes(tmp_path / "less.csv", world.net.space, world.groups)
    table.assign(assignment='{"x":1}').to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(PredictionError, match="unknown variable 'x'"):
        read_outcomes(tmp_path / "other.csv", world.net.space, world.groups)


def test_a_metric_is_read_as_it_was_written(world, outcomes, tmp_path: Path) -> None:
    metric = fit(outcomes, world.cost).metric()
    assert any(term.gate is not None and len(term.variables) == 2 for term in metric.terms)
    write_metric(tmp_path / "m.json", metric)
    found = read_metric(tmp_path / "m.json", world.net.space)
    rows = stack(sample_distinct(world.net.space, 50, np.random.default_rng(0)))
    np.testing.assert_array_equal(found.predict(rows), metric.predict(rows))
    assert (found.name, found.unit, found.link) == (metric.name, metric.unit, metric.link)


@pytest.mark.parametrize("change", [{"link": "cubic"}, {"terms": [{}]}], ids=str)
def test_a_metric_that_does_not_fit_is_refused(world, outcomes, tmp_path: Path, change: dict[str, object]) -> None:
    write_metric(tmp_path / "m.json", fit(outcomes, world.cost).metric())
    content = read_json(tmp_path / "m.json")
    del content["schema_version"]
    write_json(tmp_path / "m.json", {**content, **change})
    with pytest.raises(PredictionError, match="no metric of this space"):
        read_metric(tmp_path / "m.json", world.net.space)
