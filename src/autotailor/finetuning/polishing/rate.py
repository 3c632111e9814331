"""The learning rate of weights that arrived: the one of a few by which a short training gains most (a range test).

A rate that is too low wastes images, and one that is too high forgets what arrived. Copies of few SubNets take
``STEPS`` steps at each rate, all on the same images; the rate rises, and falls to 0 as in a training. The loss on
images that the copies do not train on is measured before the first step and behind the last one. The rate is taken by
which the loss falls most, as the geometric mean of its shares over the copies. Rates are tried from the lowest up,
until one is no better than the one before.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from autotailor.accuracy.determinism import deterministic
from autotailor.compute.placement import device_of, put, put_images
from autotailor.data.augmentation.mixing import Mixing
from autotailor.data.splits import TrainStream
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.finetuning.polishing.lockstep import Lockstep
from autotailor.finetuning.training.optimizers import make_optimizer
from autotailor.finetuning.training.steps import Step, with_gradients

logger = logging.getLogger(__name__)
STEPS = 16
"""Steps at each rate."""
WARM = 4
"""Steps of these over which the rate rises."""
PROBES = 3
"""Batches on which the loss is measured."""
FEW = 2
"""Copies that are tried: of the first and of the last SubNet."""
Item = TypeVar("Item")


def choose_rate(
    students: Sequence[nn.Module],
    lockstep: Callable[[Sequence[nn.Module], Sequence[int], PolishConfig], Lockstep],
    resolutions: Sequence[int],
    config: PolishConfig,
    stream: TrainStream,
    mix: Mixing | None,
) -> float:
    """The one of ``config.rates`` by which the loss falls most; the lowest one where no other is better.

    Args:
        students: SubNets as training begins; they are not changed.
        lockstep: makes the step of copies, of their resolutions, with parameters.
        resolutions: of the students.
        config: of the training.
        stream: of training images.
        mix: mixes the images of each batch.
    """
    config = replace(config, processes=1, nodes=1, compile=False)
    device = device_of(students[0])
    with deterministic(config.threads, device):
        batches = [
            Step(put_images(images, device), put(labels, device), 0.0, np.random.default_rng(0))
            for images, labels in islice(stream.batches(0, config.batch_size), STEPS + PROBES)
        ]
        probes, seen = batches[:PROBES], batches[PROBES:] or batches
        if mix is not None:
            seen = [_mixed(step, mix, number) for number, step in enumerate(seen)]
        best, least, begin = min(config.rates), math.inf, None
        for rate in sorted(config.rates):
            copies = [copy.deepcopy(student) for student in _ends(students)]
            step = lockstep(copies, _ends(resolutions), config)
            try:
                begin = begin or _losses(step, probes)
                _train(copies, step, config, rate, seen)
                end = _losses(step, probes)
            finally:
                step.close()
            with np.errstate(invalid="ignore", divide="ignore"):
                left = float(np.exp(np.mean(np.log(np.divide(end, begin)))))  # NaN where a loss is none
            logger.info("polish: rate %g leaves %.3f of the loss in %d steps", rate, left, STEPS)
            if not left < least:
                break
            best, least = rate, left
    return best


def _train(
    copies: Sequence[nn.Module], step: Lockstep, config: PolishConfig, rate: float, seen: Sequence[Step]
) -> None:
    """The short training of all copies at a rate."""
    modules = nn.ModuleList(copies)
    optimizer = make_optimizer(modules, config.optimizer, rate, config.weight_decay)
    for number in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (number + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * number / STEPS))
        modules.train()
        modules.zero_grad(set_to_none=True)
        step(seen[number % len(seen)])
        step.clip()
        with with_gradients(optimizer, modules):
            optimizer.step()


def _losses(step: Lockstep, probes: Sequence[Step]) -> list[float]:
    """Mean loss of each copy on the probes."""
    return torch.tensor([step.losses(probe) for probe in probes]).mean(dim=0).tolist()


def _mixed(step: Step, mix: Mixing, number: int) -> Step:
    images, labels = mix(step.images, step.labels, number)
    return replace(step, images=images, labels=labels)


def _ends(items: Sequence[Item]) -> list[Item]:
    """The first and the last of some items; one where there is but one."""
    return [items[0], items[-1]] if len(items) >= FEW else list(items)
