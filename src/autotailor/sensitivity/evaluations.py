"""Evaluations of whole SubNets beside the single modifications: what the prediction of accuracy learns from."""

from collections.abc import Collection
from pathlib import Path

import numpy as np

from autotailor.data.splits import DataSplits
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Modification, Space
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcomes, d_optimal, offer
from autotailor.prediction.functions import groups, proportional
from autotailor.sensitivity.config import SensitivityConfig
from autotailor.sensitivity.measurement import evaluate, learning, learnt_from
from autotailor.sensitivity.validation import validation_subnets
from autotailor.task.registry import of

DESIGN = 1  # stream of random numbers: others draw the SubNets by which predictions are judged


def singles(space: Space) -> list[SubNet]:
    """The largest SubNet and every single modification of it, distinct."""
    base = largest(space)
    changed = [base.transform(Modification(v.name, choice)) for v in space for choice in v.choices]
    return list(dict.fromkeys([base, *changed]))


def designed(
    outcomes: Outcomes, cost: Metric, count: int, seed: int, *, without: Collection[SubNet] = ()
) -> list[SubNet]:
    """SubNets to evaluate after the single modifications.

    Args:
        outcomes: evaluated single modifications.
        cost: MACs or latency, over which the SubNets are spread.
        count: number of SubNets.
        seed: of the draws among which a D-optimal set is chosen.
        without: SubNets that must not be chosen, because predictions are judged by them.
    """
    space = outcomes.space
    evaluated = [largest(space), *outcomes.subnets]
    offered = offer(space, count, {*evaluated, *without}, np.random.default_rng([seed, DESIGN]))
    seen = outcomes.observations
    offers = proportional(space, seen.drops()) if seen.adds_up else groups(space, seen.drops(), cost)
    return d_optimal(offers, cost, evaluated, offered, count)


def evaluate_designed(net: SuperNet, data: DataSplits, config: SensitivityConfig, journal: Path) -> Outcomes:
    """Evaluates single modifications and ``config.evaluations`` designed SubNets on images of the validation set.

    Args:
        net: the trained SuperNet.
        data: the splits; the validation set is used.
        config: parameters.
        journal: that of ``measure``, in which the single modifications are found again.
    """
    images = learnt_from(data, config)
    title = learning(data, images)
    alone = singles(net.space)
    evaluations = evaluate(net, data, images, alone, config, journal, title)
    outcomes = Outcomes.of(net.space, alone, evaluations, images.groups, of(images).chance(images.labels))
    judges = validation_subnets(net, config)
    more = designed(outcomes, net.macs(), config.evaluations, config.seed, without=judges)
    return outcomes.with_more(more, evaluate(net, data, images, more, config, journal, title))
