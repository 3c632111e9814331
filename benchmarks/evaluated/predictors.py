"""The predictors that are compared: from evaluated SubNets to log-odds against the largest SubNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.link import points_of_log_odds
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.prediction import AccuracyModel, Outcomes, d_optimal, fit, learn
from autotailor.prediction.functions import groups
from evaluated.network import Network

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted log-odds against the largest SubNet ``[n]``; its variance where the predictor knows one."""

    values: FloatArray
    variance: FloatArray | None = None


Predictor = Callable[[Network, Sequence[SubNet], Sequence[SubNet]], Prediction]
"""From single modifications and further evaluated SubNets, and the SubNets to predict."""


def single_drops(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet]) -> Prediction:
    """The sum of single drops (paper, eq. 3)."""
    offered = groups(network.net.space, network.outcomes(learnt).observations.drops(), network.net.macs())
    drops = next(group for group in offered if group.name == "drops")
    return Prediction(drops.columns(network.net.space, stack(asked))[:, 0])


def ours(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet]) -> Prediction:
    """The model of ``autotailor.prediction``, which learns from answers and losses."""
    return predicted(fit(network.outcomes(learnt), network.net.macs()), asked)


def answers_alone(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet]) -> Prediction:
    """The same model, which learns from right answers and not from losses."""
    return predicted(learn(network.outcomes(learnt).observed(None), network.net.macs()), asked)


def predicted(model: AccuracyModel, asked: Sequence[SubNet]) -> Prediction:
    """Predictions of a model, whose percentages are converted back to log-odds."""
    rows = stack(asked)
    metric, floor = model.metric(), 100 * model.observations.floor
    errors = model.metric_errors(rows, known_level=True) / points_of_log_odds(metric.predict(rows), floor)
    return Prediction(metric.linear(rows) - model.observations.baseline, np.square(errors))


def perceptron(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet]) -> Prediction:
    """A multilayer perceptron of three layers with 400 units over one-hot choices, as in Once-for-All."""
    from sklearn.neural_network import MLPRegressor

    return _regressed(
        network, learnt, asked, MLPRegressor(hidden_layer_sizes=(400, 400, 400), max_iter=300, random_state=0)
    )


def boosting(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet]) -> Prediction:
    """Gradient boosting over one-hot choices."""
    from sklearn.ensemble import GradientBoostingRegressor

    return _regressed(network, learnt, asked, GradientBoostingRegressor(random_state=0))


def _regressed(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet], model: object) -> Prediction:
    """A regression of scikit-learn on targets with mean 0 and deviation 1; the largest SubNet is among them."""
    found: Outcomes = network.outcomes(learnt)
    subnets, targets = [network.net.largest(), *found.subnets], np.append(0.0, found.target)
    mean, deviation = targets.mean(), targets.std()
    model.fit(network.one_hot(subnets), (targets - mean) / deviation)  # type: ignore[attr-defined]
    values = model.predict(network.one_hot(asked)) * deviation + mean  # type: ignore[attr-defined]
    return Prediction(np.asarray(values, dtype=np.float64))


def designed(network: Network, offered: Sequence[SubNet], count: int) -> list[SubNet]:
    """The SubNets that ours evaluates: a D-optimal choice among those that are offered."""
    singles = network_singles(network)
    found = groups(network.net.space, network.outcomes(singles).observations.drops(), network.net.macs())
    return d_optimal(found, network.net.macs(), singles, offered, count)


def network_singles(network: Network) -> list[SubNet]:
    """The largest SubNet and every single modification of it."""
    from autotailor.ir.space.variable import Modification

    base = network.net.largest()
    found = [base.transform(Modification(v.name, c)) for v in network.net.space for c in v.choices]
    return list(dict.fromkeys([base, *found]))
