"""Who teaches the SubNets that get weights of their own.

The largest SubNet teaches, unless sharing its weights has cost it a part of what the original network knew: then the
original network does. A configuration may name either of them, or another network.
"""

from __future__ import annotations

import logging

import torch

from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import LARGEST
from autotailor.finetuning.external_teacher import Teacher, load_teacher
from autotailor.finetuning.forgetting import has_forgotten, standing
from autotailor.finetuning.polishing.config import ORIGINAL, PolishConfig
from autotailor.finetuning.teacher import question
from autotailor.ir.supernet import SuperNet
from autotailor.task.registry import of, score_of

logger = logging.getLogger(__name__)
KEY = "polish.teacher"


def choose_teacher(
    net: SuperNet, original: SuperNet, data: DataSplits, config: PolishConfig, device: torch.device
) -> Teacher:
    """The network that teaches, on the device that trains; the original network has its channels as the SuperNet has.

    Args:
        net: the trained SuperNet.
        original: the SuperNet as compiled, whose largest SubNet is the original network.
        data: the splits; the validation set is used where ``config.teacher`` is ``best`` or another network.
        config: of the polishing.
        device: that trains.

    Raises:
        TrainingError: the network that the configuration names cannot be loaded or cannot classify the data.
    """
    if config.has_own_teacher:
        return _named(data, config, device)
    original = original.sorted_as(net)
    if config.teacher == ORIGINAL:
        return Teacher.largest_of(original, device, logits=of(data).logits)
    largest = Teacher.largest_of(net, device, "the largest SubNet", logits=of(data).logits)
    if config.teacher == LARGEST:
        return largest
    unchanged = Teacher.largest_of(original, device, logits=of(data).logits)
    with deterministic(config.threads, device):
        now, before = (correctness(each.network, data.validation, each.resolution) for each in (largest, unchanged))
    teacher = unchanged if has_forgotten(before, now, data.validation.groups) else largest
    score = score_of(data)
    said = standing(percent(now), percent(before), "the validation images", score, score.name)
    logger.info("polish: %s teaches; the largest SubNet %s", teacher.name, said)
    return teacher


def _named(data: DataSplits, config: PolishConfig, device: torch.device) -> Teacher:
    """The network that the configuration names, after a check of its accuracy."""
    with deterministic(config.threads, device):
        teacher = load_teacher(config.teacher, data, device, KEY)
        question(teacher.network, data, teacher.resolution, config.accept_chance, teacher.name, "polish.accept_chance")
    return teacher
