"""Accuracies during training: both ends of the space and a fixed draw of SubNets, on part of the validation set."""

from __future__ import annotations

import logging
from dataclasses import replace
from statistics import fmean

import numpy as np
import torch
from torch import nn

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.evaluation import BoolArray, correctness, percent
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.data.excerpt import excerpt, spread
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import FinetuneConfig, PretrainConfig
from autotailor.finetuning.forgetting import LARGEST, EarlyWarning
from autotailor.finetuning.training.processes.group import Group, join
from autotailor.finetuning.training.watch import Accuracies, Record, Watch
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet, largest, sample_distinct, smallest

logger = logging.getLogger(__name__)
PANEL = 1  # seed word that keeps the draw of the panel apart from other draws
MEAN = "panel_accuracy"
LEAST = 2  # images of a calibration


def watch_subnets(
    module: ElasticModule, data: DataSplits, config: FinetuneConfig, known: BoolArray, record: Record
) -> Watch:
    """Watches the largest and the smallest SubNet and ``config.panel.subnets`` random ones.

    The columns are ``largest_accuracy``, ``smallest_accuracy``, ``panel_accuracy`` (mean of the random SubNets) and
    ``panel_1_accuracy``, ``panel_2_accuracy`` ... Every SubNet is recalibrated each time, on the first images of
    ``config.calibration``. A warning is given where the largest SubNet falls far below the original network.

    Args:
        module: the SuperNet in training.
        data: the splits.
        config: of the training.
        known: whether the original network is right, for each image of the validation set ``[n]``.
        record: takes the metrics of each epoch.
    """
    panel = config.panel
    if not panel.every:
        return Watch(record=record)
    space = module.elastic.space
    drawn = sample_distinct(space, panel.subnets, np.random.default_rng([config.seed, PANEL]))
    members = {"largest": largest(space), "smallest": smallest(space)}
    members |= {f"panel_{number}": subnet for number, subnet in enumerate(drawn, 1)}
    logger.info("finetune: the panel is %s", ", ".join(f"{n} = SubNet {s.id}" for n, s in members.items()))
    few = max(LEAST, min(config.calibration.images, panel.images))
    calibrator = Calibrator(data, replace(config.calibration, images=few))
    asked = known[spread(len(known), panel.images)]
    early = EarlyWarning(record, asked, data.num_classes, config.lr, labelled=data.labelled)
    evaluator = Evaluator(module, calibrator, excerpt(data.validation, panel.images), config.workers)

    def measure(trained: nn.Module) -> Accuracies:
        assert isinstance(trained, ElasticModule)
        evaluator.look_at(trained)
        return _accuracies(evaluator, members, join(config))

    return Watch(measure, panel.every, early, config.keep == "best")


def _accuracies(evaluator: Evaluator, members: dict[str, SubNet], group: Group) -> Accuracies:
    subnets = list(dict.fromkeys(members.values()))
    found = torch.zeros(len(subnets), dtype=torch.float64)
    for subnet, outcome in evaluator.all(
        subnets[group.rank :: group.size]
    ):  # each process evaluates SubNets of its own
        found[subnets.index(subnet)] = percent(outcome.right)  # the evaluator's order is that of shared prefixes
    right = dict(zip(subnets, group.gather(found).sum(0).tolist(), strict=True))
    columns = {f"{name}_accuracy": right[subnet] for name, subnet in members.items()}
    columns[MEAN] = fmean(value for name, value in columns.items() if name.startswith("panel_"))
    shown = {"largest": LARGEST, "smallest": "smallest_accuracy", "panel": MEAN}
    return Accuracies(columns, shown, columns[MEAN])


def watch_network(data: DataSplits, config: PretrainConfig, record: Record) -> Watch:
    """Watches the accuracy of a plain network on part of the validation set (``validation_accuracy``)."""
    if not config.panel.every:
        return Watch(record=record)
    images = excerpt(data.validation, config.panel.images)

    def measure(network: nn.Module) -> Accuracies:
        found = percent(correctness(network, images))
        return Accuracies({"validation_accuracy": found}, {"validation": "validation_accuracy"}, found)

    return Watch(measure, config.panel.every, record, config.keep == "best")
