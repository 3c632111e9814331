"""Who teaches the SubNets that get weights of their own.

Weight sharing may cost the largest SubNet a part of what the original network knew, or gain it some accuracy. Both
networks answer the validation set, and the better one teaches.
"""

from __future__ import annotations

import logging

import torch

from autotailor.accuracy.calibration import resolution_of
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.evaluation import correctness, percent
from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import LARGEST
from autotailor.finetuning.external_teacher import Teacher
from autotailor.finetuning.polishing.config import BEST, PolishConfig
from autotailor.ir.supernet import SuperNet

logger = logging.getLogger(__name__)


def choose_teacher(
    net: SuperNet, original: SuperNet, data: DataSplits, config: PolishConfig, device: torch.device
) -> Teacher:
    """The network that teaches, on the device that trains.

    Args:
        net: the trained SuperNet.
        original: the SuperNet as compiled, whose largest SubNet is the original network.
        data: the splits; the validation set is used where ``config.teacher`` is ``best``.
        config: of the polishing. The largest SubNet teaches where both networks are right equally often.
        device: that trains.
    """
    largest = _teacher(net, "the largest SubNet", device)
    if config.teacher == LARGEST:
        return largest
    known = _teacher(original, "the original network", device)
    if config.teacher != BEST:
        return known
    with deterministic(config.threads, device):
        ours, theirs = (
            percent(correctness(each.network, data.validation, each.resolution)) for each in (largest, known)
        )
    found = largest if ours >= theirs else known
    logger.info(
        "polish: %s teaches; of the validation images, the largest SubNet is right for %.1f %%, "
        "the original network for %.1f %%",
        found.name,
        ours,
        theirs,
    )
    return found


def _teacher(net: SuperNet, name: str, device: torch.device) -> Teacher:
    network = net.build(net.largest(), logits=True).eval().requires_grad_(False).to(device)
    return Teacher(network, resolution_of(net.largest()), name)
