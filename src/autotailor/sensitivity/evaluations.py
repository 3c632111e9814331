"""Evaluations of whole SubNets beside the single modifications: what the prediction of accuracy learns from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from autotailor.data.splits import DataSplits
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import SubNet, largest, stack
from autotailor.ir.space.variable import Modification, Space
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcomes, d_optimal, ends
from autotailor.prediction.functions import groups
from autotailor.sensitivity.config import SensitivityConfig
from autotailor.sensitivity.measurement import evaluate, learning, learnt_from


def singles(space: Space) -> list[SubNet]:
    """The largest SubNet and every single modification of it, distinct."""
    base = largest(space)
    changed = [base.transform(Modification(v.name, choice)) for v in space for choice in v.choices]
    return list(dict.fromkeys([base, *changed]))


def designed(outcomes: Outcomes, cost: Metric, count: int, seed: int) -> list[SubNet]:
    """SubNets to evaluate after the single modifications.

    Args:
        outcomes: evaluated single modifications.
        cost: MACs or latency, over which the SubNets are spread.
        count: number of SubNets: both ends at each resolution come first, then a D-optimal set.
        seed: of the draws of the D-optimal set.
    """
    space = outcomes.space
    known = [largest(space), *outcomes.subnets]
    first = [subnet for subnet in ends(space) if subnet not in known][:count]
    offered = groups(space, outcomes.observations.drops(), cost)
    rows = stack([*known, *first])
    return [*first, *d_optimal(space, offered, cost, rows, count - len(first), np.random.default_rng(seed))]


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
    right = evaluate(net, data, images, alone, config, journal, title)
    outcomes = Outcomes.of(net.space, alone, right, images.groups)
    more = designed(outcomes, net.macs(), config.evaluations, config.seed)
    return outcomes.with_more(more, evaluate(net, data, images, more, config, journal, title))
