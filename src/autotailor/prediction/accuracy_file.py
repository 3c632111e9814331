"""``accuracy.json``: the prediction of accuracy as terms, and what its standard errors follow from.

A sum of single drops keeps the squares of its standard errors, terms as well. A model that learnt from evaluations
keeps its observations and variances: one row of choices, and eleven numbers for each part of the log-odds, for each
evaluated SubNet. They are less than a covariance of all weights would be, and the model that is read is the one that
was written. A file from before losses were learnt from has the log-odds in one part, beside the choices; an earlier
file lacks the noise that SubNets have in common, which then counts as none, or the variance beside it, which then is
what the variance of the fit leaves.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autotailor.artifacts import read_json, write_json
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.gate import Gate
from autotailor.ir.space.link import link_of
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import largest, smallest, stack
from autotailor.prediction.accuracy import Accuracy, DropError, ModelError
from autotailor.prediction.evaluations.observations import Observations, Part
from autotailor.prediction.evaluations.outcome import PredictionError
from autotailor.prediction.functions import Group
from autotailor.prediction.linear import Prior
from autotailor.prediction.model import AccuracyModel, functions

DROPS, EVALUATIONS = "drops", "evaluations"


def write_accuracy(path: str | Path, accuracy: Accuracy) -> None:
    """Writes a prediction as JSON: name, unit, link, constant and terms of its metric, and its ``error``."""
    metric = accuracy.metric
    head = {"name": metric.name, "unit": metric.unit, "link": metric.link.name, **_sum(metric)}
    error = None if accuracy.error is None else _error(accuracy.error)
    write_json(path, {**head, "error": error})


def read_accuracy(path: str | Path, cost: Metric) -> Accuracy:
    """Reads a file of ``write_accuracy``; one that was written before errors were kept has none.

    Args:
        path: of the file.
        cost: the metric that the model was fitted with (MACs); its space is that of the SubNets.

    Raises:
        PredictionError: the file holds no prediction of this space, or its error does not belong to its terms.
    """
    content = read_json(path)
    try:
        terms = _terms(content["terms"])
        metric = Metric(
            content["name"], content["unit"], cost.space, terms, float(content["constant"]), link_of(content["link"])
        )
        kept = content.get("error")
        error = None if kept is None else _read_error(kept, cost)
    except (KeyError, TypeError, ValueError, AutoTailorError) as error_:
        raise PredictionError(
            f"{path} holds no prediction of accuracy for this space ({error_}); run the rule search again"
        ) from error_
    if isinstance(error, ModelError):
        _check(path, metric, error.model)
    return Accuracy(metric, error)


def _check(path: str | Path, metric: Metric, model: AccuracyModel) -> None:
    """Refuses a model whose mean is not the file's metric: another version of the program makes other functions."""
    rows = np.concatenate([stack([largest(metric.space), smallest(metric.space)]), model.observations.indices])
    if not np.allclose(model.metric().linear(rows), metric.linear(rows), rtol=0.0, atol=1e-6):
        raise PredictionError(
            f"{path}: the evaluations that it keeps lead to another prediction than its terms, because it was written "
            "by another version of autotailor or changed by hand; run the rule search again"
        )


def _error(error: DropError | ModelError) -> dict[str, Any]:
    if isinstance(error, DropError):
        return {"from": DROPS, **_sum(error.variance)}
    seen = error.model.observations
    return {
        "from": EVALUATIONS,
        "baseline": seen.baseline,
        "floor": seen.floor,
        "shared": seen.shared,
        "level": seen.level,
        "subnets": seen.indices.tolist(),
        "slope": seen.slope,
        "adds_up": seen.adds_up,
        "parts": [
            {
                "variances": dict(prior.variances),
                "uneven": prior.uneven,
                "target": part.target.tolist(),
                "independent": part.independent.tolist(),
                "correlated": part.correlated.tolist(),
                "rest": part.rest.tolist(),
            }
            for part, prior in zip(seen.parts, error.model.priors, strict=True)
        ],
    }


def _read_error(entry: Mapping[str, Any], cost: Metric) -> DropError | ModelError:
    if entry["from"] == DROPS:
        variance = Metric("accuracy_variance", "%²", cost.space, _terms(entry["terms"]), float(entry["constant"]))
        return DropError(variance)
    if entry["from"] != EVALUATIONS:
        raise ValueError(f"an error from {entry['from']!r}, expected {DROPS!r} or {EVALUATIONS!r}")
    kept = entry.get("parts", [entry])
    rows, slope = np.array(entry["subnets"]), entry.get("slope")
    parts = tuple(_read_part(each, rows, len(cost.space)) for each in kept)
    if len(parts) != (1 if slope is None else 2):
        raise ValueError(f"{len(parts)} parts of the log-odds with the slope {slope}")
    shared, level, baseline = (float(entry[key]) for key in ("shared", "level", "baseline"))
    levels = (shared, level, baseline, float(entry.get("floor", 0.0)))
    weight = None if slope is None else float(slope)
    seen = Observations(cost.space, rows.astype(np.int64), parts, weight, *levels, bool(entry.get("adds_up", False)))
    offered = zip(kept, functions(seen, cost), strict=True)
    return ModelError(AccuracyModel(seen, tuple(_read_prior(each, groups) for each, groups in offered)))


def _read_part(entry: Mapping[str, Any], rows: np.ndarray, variables: int) -> Part:
    target, own = (np.array(entry[key], dtype=np.float64) for key in ("target", "independent"))
    if (
        rows.shape != (len(target), variables)
        or own.shape != target.shape
        or np.shape(entry.get("rest", own)) != own.shape
    ):
        raise ValueError(f"{len(target)} evaluated SubNets with choices {list(rows.shape)}")
    correlated = np.array(entry.get("correlated", [[]] * len(target)), dtype=np.float64).reshape(len(target), -1)
    rest = entry.get("rest", np.maximum(own - np.square(correlated).sum(axis=1), 0.0))
    return Part(target, own, correlated, np.array(rest, dtype=np.float64))


def _read_prior(entry: Mapping[str, Any], groups: tuple[Group, ...]) -> Prior:
    variances = {str(name): float(value) for name, value in entry["variances"].items()}
    if unknown := sorted({group.name for group in groups} - set(variances)):
        raise ValueError(f"the variance of {unknown[0]} is missing")
    return Prior(groups, variances, float(entry.get("uneven", 0.0)))


def _sum(metric: Metric) -> dict[str, Any]:
    """Constant and terms as plain data."""
    if any(term.derived is not None for term in metric.terms):
        raise PredictionError(f"metric {metric.name}: a term over derived sums cannot be written")
    terms = [
        {
            "variables": list(term.variables),
            "table": np.asarray(term.table).tolist(),
            "gate": None if term.gate is None else {"variables": list(term.gate.variables), "table": term.gate.table},
            "label": term.label,
        }
        for term in metric.terms
    ]
    return {"constant": metric.constant, "terms": terms}


def _terms(terms: Iterable[Mapping[str, Any]]) -> tuple[Term, ...]:
    return tuple(
        Term(tuple(t["variables"]), np.array(t["table"], dtype=np.float64), _gate(t["gate"]), t["label"]) for t in terms
    )


def _gate(plain: Mapping[str, Any] | None) -> Gate | None:
    if plain is None:
        return None

    def nested(table: object) -> object:
        return tuple(nested(entry) for entry in table) if isinstance(table, list) else bool(table)

    return Gate(tuple(str(name) for name in plain["variables"]), nested(plain["table"]))  # type: ignore[arg-type]
