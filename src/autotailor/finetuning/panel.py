"""Accuracies during training: both ends of the space and a fixed draw of SubNets, on part of the validation set."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import torch
from torch import nn

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.data.excerpt import excerpt, spread
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import FinetuneConfig, PretrainConfig
from autotailor.finetuning.forgetting import LARGEST, EarlyWarning
from autotailor.finetuning.training.processes.group import Group, join
from autotailor.finetuning.training.watch import Accuracies, Record, Watch
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet, largest, sample_distinct, smallest
from autotailor.task.registry import of, score_of

logger = logging.getLogger(__name__)
PANEL = 1  # seed word that keeps the draw of the panel apart from other draws
MEAN = "panel_accuracy"
LEAST = 2  # images of a calibration


def watch_subnets(
    module: ElasticModule,
    data: DataSplits,
    config: FinetuneConfig,
    before: FloatArray | None,
    record: Record,
    panel: Sequence[SubNet] = (),
) -> Watch:
    """Watches the largest and the smallest SubNet and some others.

    The columns are ``largest_accuracy``, ``smallest_accuracy``, ``panel_accuracy`` (mean of the others) and
    ``panel_1_accuracy``, ``panel_2_accuracy`` ... Every SubNet is recalibrated each time, on the first images of
    ``config.calibration``. A warning is given where the largest SubNet falls far below the original network.

    Args:
        module: the SuperNet in training.
        data: the splits.
        config: of the training.
        before: values of the original network for the images of the validation set ``[n]``; None for no warning.
        record: takes the metrics of each epoch.
        panel: the others; without any, ``config.panel.subnets`` are drawn.
    """
    every, count = config.panel.every, config.panel.images
    if not every:
        return Watch(record=record)
    space = module.elastic.space
    drawn = panel or sample_distinct(space, config.panel.subnets, np.random.default_rng([config.seed, PANEL]))
    members = {"largest": largest(space), "smallest": smallest(space)}
    members |= {f"panel_{number}": subnet for number, subnet in enumerate(drawn, 1)}
    logger.info("the panel is %s", ", ".join(f"{n} = SubNet {s.id}" for n, s in members.items()))
    few = max(LEAST, min(config.calibration.images, count))
    calibrator = Calibrator(data, replace(config.calibration, images=few))
    if before is not None:
        values = before[spread(len(before), count)]
        chance = of(data).chance(data.validation.labels)
        record = EarlyWarning(record, values, chance, config.lr, score_of(data))
    evaluator = Evaluator(module, calibrator, excerpt(data.validation, count), config.workers)

    def measure(trained: nn.Module) -> Accuracies:
        assert isinstance(trained, ElasticModule)
        evaluator.look_at(trained)
        return _accuracies(evaluator, members, join(config))

    return Watch(measure, every, record, config.keep == "best")


def _accuracies(evaluator: Evaluator, members: dict[str, SubNet], group: Group) -> Accuracies:
    accuracies = accuracies_of(evaluator, list(dict.fromkeys(members.values())), group)
    columns = {f"{name}_accuracy": accuracies[subnet] for name, subnet in members.items()}
    columns[MEAN] = fmean(value for name, value in columns.items() if name.startswith("panel_"))
    shown = {"largest": LARGEST, "smallest": "smallest_accuracy", "panel": MEAN}
    return Accuracies(columns, shown, columns[MEAN])


def accuracies_of(evaluator: Evaluator, subnets: Sequence[SubNet], group: Group) -> dict[SubNet, float]:
    """Accuracies of distinct SubNets, percent; each of the processes that train together evaluates some of them."""
    accuracies = torch.zeros(len(subnets), dtype=torch.float64)
    for subnet, outcome in evaluator.all(subnets[group.rank :: group.size]):
        accuracies[subnets.index(subnet)] = percent(outcome.values)  # the evaluator's order is that of shared prefixes
    return dict(zip(subnets, group.gather(accuracies).sum(0).tolist(), strict=True))


def watch_network(data: DataSplits, config: PretrainConfig, record: Record) -> Watch:
    """Watches the accuracy of a plain network on part of the validation set (``validation_accuracy``)."""
    if not config.panel.every:
        return Watch(record=record)
    images = excerpt(data.validation, config.panel.images)

    def measure(network: nn.Module) -> Accuracies:
        score = percent(correctness(network, images))
        return Accuracies({"validation_accuracy": score}, {"validation": "validation_accuracy"}, score)

    return Watch(measure, config.panel.every, record, config.keep == "best")
