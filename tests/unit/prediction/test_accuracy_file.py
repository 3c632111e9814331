"""``accuracy.json``: terms, and what the standard errors follow from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotailor.artifacts import read_json, write_json
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction import (
    Accuracy,
    DropError,
    Outcomes,
    PredictionError,
    fit,
    learn,
    read_accuracy,
    write_accuracy,
)


@pytest.fixture(scope="module")
def learnt(world) -> Accuracy:
    return Accuracy.learnt(fit(world.outcomes(5), world.cost))


@pytest.fixture(scope="module")
def rows(world) -> np.ndarray:
    return stack([*sample_distinct(world.net.space, 50, np.random.default_rng(0)), *world.outcomes(5).subnets])


def changed(path: Path, **values: Any) -> None:
    content = read_json(path)
    del content["schema_version"]
    write_json(path, {**content, **values})


def test_a_metric_is_read_as_it_was_written(world, learnt: Accuracy, rows: np.ndarray, tmp_path: Path) -> None:
    metric = learnt.metric
    assert any(term.gate is not None and len(term.variables) == 2 for term in metric.terms)
    write_accuracy(tmp_path / "a.json", learnt)
    found = read_accuracy(tmp_path / "a.json", world.cost).metric
    np.testing.assert_array_equal(found.predict(rows), metric.predict(rows))
    assert (found.name, found.unit, found.link) == (metric.name, metric.unit, metric.link)


def test_the_model_is_read_as_it_was_written(world, learnt: Accuracy, rows: np.ndarray, tmp_path: Path) -> None:
    write_accuracy(tmp_path / "a.json", learnt)
    found = read_accuracy(tmp_path / "a.json", world.cost).error
    np.testing.assert_array_equal(found.predict(rows), learnt.error.predict(rows))
    np.testing.assert_array_equal(found.model.predict(rows), learnt.error.model.predict(rows))
    draws = (error.model.draw(np.random.default_rng(1)).predict(rows) for error in (found, learnt.error))
    np.testing.assert_array_equal(*draws)


def test_errors_of_drops_are_read_as_they_were_written(world, rows: np.ndarray, tmp_path: Path) -> None:
    space = world.net.space
    terms = tuple(Term((v.name,), np.arange(len(v.choices)) + 1.0, v.gate, v.name) for v in space)
    error = DropError(Metric("accuracy_variance", "%²", space, terms, 0.25))
    write_accuracy(tmp_path / "a.json", Accuracy(Metric("accuracy", "%", space, terms, 90.0), error))
    found = read_accuracy(tmp_path / "a.json", world.cost).error
    np.testing.assert_array_equal(found.predict(rows), error.predict(rows))


def test_a_file_from_before_errors_were_kept_is_read_without(world, learnt: Accuracy, tmp_path: Path) -> None:
    write_accuracy(tmp_path / "a.json", learnt)
    content = read_json(tmp_path / "a.json")
    del content["schema_version"], content["error"]
    write_json(tmp_path / "a.json", content)
    assert read_accuracy(tmp_path / "a.json", world.cost).error is None


@pytest.mark.parametrize("change", [{"link": "cubic"}, {"terms": [{}]}, {"error": {"from": "a dream"}}], ids=str)
def test_a_prediction_that_does_not_fit_is_refused(
    world, learnt: Accuracy, tmp_path: Path, change: dict[str, object]
) -> None:
    write_accuracy(tmp_path / "a.json", learnt)
    changed(tmp_path / "a.json", **change)
    with pytest.raises(PredictionError, match="no prediction of accuracy for this space"):
        read_accuracy(tmp_path / "a.json", world.cost)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subnets": [[0]]}, r"evaluated SubNets with choices \[1, 1\]"),
        ({"slope": None}, "2 parts of the log-odds with the slope None"),
        ({"baseline": 0.0}, "another prediction than its terms"),
    ],
    ids=["rows", "slope", "baseline"],
)
def test_evaluations_that_do_not_fit_are_refused(
    world, learnt: Accuracy, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    write_accuracy(tmp_path / "a.json", learnt)
    kept = read_json(tmp_path / "a.json")["error"]
    changed(tmp_path / "a.json", error={**kept, **change})
    with pytest.raises(PredictionError, match=message):
        read_accuracy(tmp_path / "a.json", world.cost)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": [0.0]}, "1 evaluated SubNets"),
        ({"variances": {}}, "variance of choices is missing"),
        ({"independent": None}, "no prediction of accuracy for this space"),
        ({"rest": [0.0]}, "evaluated SubNets with choices"),
    ],
    ids=["rows", "variances", "noise", "rest of the noise"],
)
def test_a_part_that_does_not_fit_is_refused(
    world, learnt: Accuracy, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    write_accuracy(tmp_path / "a.json", learnt)
    kept = read_json(tmp_path / "a.json")["error"]
    first, second = kept["parts"]
    changed(tmp_path / "a.json", error={**kept, "parts": [first, {**second, **change}]})
    with pytest.raises(PredictionError, match=message):
        read_accuracy(tmp_path / "a.json", world.cost)


def test_a_file_from_before_losses_were_learnt_from_is_read(world, rows: np.ndarray, tmp_path: Path) -> None:
    """It holds the one part of the log-odds beside the choices of the SubNets, and no slope."""
    model = learn(world.outcomes(5).observed(None), world.cost)
    write_accuracy(tmp_path / "a.json", Accuracy.learnt(model))
    kept = read_json(tmp_path / "a.json")["error"]
    (part,) = kept.pop("parts")
    del kept["slope"]
    changed(tmp_path / "a.json", error={**kept, **part})
    found = read_accuracy(tmp_path / "a.json", world.cost).model
    np.testing.assert_array_equal(found.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(found.metric_errors(rows), model.metric_errors(rows))
    later = Outcomes.of(world.net.space, world.singles(), world.evaluate(world.singles()), world.groups)
    np.testing.assert_array_equal(found.updated(later).predict(rows), model.updated(later).predict(rows))


def test_a_file_from_before_the_rest_of_the_noise_was_kept_is_read(
    world, learnt: Accuracy, rows: np.ndarray, tmp_path: Path
) -> None:
    """What the fit's variance leaves beside the common draws is then the rest."""
    write_accuracy(tmp_path / "a.json", learnt)
    kept = read_json(tmp_path / "a.json")["error"]
    parts = [{name: value for name, value in part.items() if name != "rest"} for part in kept["parts"]]
    changed(tmp_path / "a.json", error={**kept, "parts": parts})
    found = read_accuracy(tmp_path / "a.json", world.cost).model
    np.testing.assert_array_equal(found.predict(rows), learnt.model.predict(rows))
    for part in found.observations.parts:
        whole = part.rest + np.square(part.correlated).sum(axis=1)
        np.testing.assert_allclose(whole, np.maximum(part.independent, np.square(part.correlated).sum(axis=1)))
