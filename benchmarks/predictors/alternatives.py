"""Alternative predictors with the same measuring time. Each returns the judged SubNets' latency ``[n]``.

A prediction has the unit of the measurements that the predictor was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.supernet import SuperNet
from autotailor.search.robust.learning import forecast

FloatArray = npt.NDArray[np.float64]
SEED = 0
FOLDS, VALIDATED = 5, 20


def look_up(
    net: SuperNet, fusion: FusionRules, latencies: Mapping[str, float], subnets: Sequence[SubNet]
) -> FloatArray:
    """Sums a table's latencies over a SubNet's operators; NaN where the table lacks one."""
    table = {feature.id: latencies.get(feature.id, np.nan) for feature in net.operators(fusion=fusion)}
    return net.latency(table, fusion).predict(stack(subnets))


def with_forecast(predicted: FloatArray, measured: FloatArray, floor: FloatArray) -> FloatArray:
    """The table's predictions with the bias that the rule ``search`` learns from ``validation.csv`` (20 SubNets).

    Args:
        predicted: by the table ``[n]``.
        measured: the same SubNets' latencies ``[n]``.
        floor: by how much two rounds of each SubNet differ, relative ``[n]``.

    Returns:
        ``[n]``; of the SubNets a prediction learns from, none is the predicted one.
    """
    order = np.random.default_rng(SEED).permutation(len(predicted))
    table = pd.DataFrame(
        {"subnet": order.astype(str), "predicted_ms": predicted, "measured_ms": measured, "noise_floor": floor}
    ).assign(lut_error=np.nan)
    found = np.empty(len(predicted))
    for judged in np.array_split(order, FOLDS):
        learnt = forecast(table.iloc[np.setdiff1d(order, judged)[:VALIDATED]], confidence=0.5)
        found[judged] = [learnt.expected(value) for value in predicted[judged]]
    return found


def macs_regression(net: SuperNet, training: pd.DataFrame, subnets: Sequence[SubNet]) -> FloatArray:
    """A straight line over the number of multiply-accumulates, fitted to whole SubNets."""
    macs = net.macs()
    trained = stack([SubNet.from_json(net.space, text) for text in training.subnet])
    line = LinearRegression().fit(macs.predict(trained)[:, None], training.anchors)
    return np.asarray(line.predict(macs.predict(stack(subnets))[:, None]))


def forest_over_operators(
    net: SuperNet,
    fusion: FusionRules,
    operators: Sequence[OperatorFeature],
    latencies: Mapping[str, float],
    subnets: Sequence[SubNet],
) -> FloatArray:
    """Random forests over operators' features, one for each kind, fitted to measured operators (as in nn-Meter).

    The forests are fitted to the latencies of the LUT, which were measured in place. So they differ from the LUT's
    predictor in the model only.
    """
    predicted: dict[str, float] = {}
    by_kind: dict[str, list[OperatorFeature]] = {}
    for feature in operators:
        by_kind.setdefault(feature.kind, []).append(feature)
    for features in by_kind.values():
        known = [feature for feature in features if feature.id in latencies]
        model = RandomForestRegressor(100, random_state=SEED)
        model.fit(_numbers(known), np.log([latencies[feature.id] for feature in known]))
        values = np.exp(model.predict(_numbers(features)))
        predicted |= {feature.id: float(value) for feature, value in zip(features, values, strict=True)}
    return look_up(net, fusion, predicted, subnets)


def _numbers(features: Sequence[OperatorFeature]) -> FloatArray:
    """Sizes, window and cost of operators of one kind, as nn-Meter describes its kernels."""
    rows = []
    for feature in features:
        weights = feature.weights[0] if feature.weights else ()
        sizes = [*feature.inputs[0][1:], *feature.outputs[0][1:], *weights[2:]]
        strides = [number for _, value in feature.attributes if isinstance(value, tuple) for number in value]
        products = float(np.prod(weights[1:], dtype=np.float64) * np.prod(feature.outputs[0], dtype=np.float64))
        moved = float(sum(np.prod(s) for s in (*feature.inputs, *feature.outputs, *feature.weights)))
        rows.append([np.log1p(products), np.log1p(moved), len(feature.followers), *sizes, *strides])
    width = max(len(row) for row in rows)
    return np.array([row + [0.0] * (width - len(row)) for row in rows], dtype=np.float64)


def boosting_over_encodings(net: SuperNet, training: pd.DataFrame, subnets: Sequence[SubNet]) -> FloatArray:
    """Gradient boosting over the choices of all variables, fitted to whole SubNets."""
    trained = stack([SubNet.from_json(net.space, text) for text in training.subnet])
    model = GradientBoostingRegressor(n_estimators=300, learning_rate=0.1, max_depth=3, random_state=SEED)
    model.fit(trained, np.log(training.anchors))
    return np.asarray(np.exp(model.predict(stack(subnets))))
