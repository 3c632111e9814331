"""The prediction of accuracy that the rules ``sensitivity`` and ``search`` make, for benchmarks that choose SubNets."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from autotailor import prediction, search, sensitivity
from autotailor.data.splits import DataSplits
from autotailor.ir.space.metric import Metric
from autotailor.ir.supernet import SuperNet


def learnt_accuracy(
    net: SuperNet,
    data: DataSplits,
    settings: sensitivity.SensitivityConfig,
    config: search.SearchConfig,
    cost: Metric,
    budgets: list[str],
    folder: Path,
) -> Metric:
    """Accuracy learnt from single modifications, designed SubNets, and rounds along the front.

    Args:
        net: the trained SuperNet.
        data: the splits; the validation set is used.
        settings: of the evaluations.
        config: of the search and of the rounds.
        cost: latency, or what stands for latency.
        budgets: where SubNets will be chosen, shares of the cost of the largest SubNet.
        folder: for the journals of the evaluations, from which a run that was killed continues.
    """
    images = sensitivity.learnt_from(data, settings)
    known = sensitivity.evaluate_designed(net, data, settings, folder / "sensitivity.jsonl")
    rounds = prediction.evaluate_along_front(
        known,
        net.macs(),
        search.best_at(cost, budgets, config),
        lambda subnets: sensitivity.evaluate(
            net, data, images, subnets, settings, folder / "evaluations.jsonl", "front"
        ),
        config.evaluations,
        config.regret,
        np.random.default_rng(config.seed),
    )
    return rounds.model.metric()
