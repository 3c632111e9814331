"""The learning rate of weights that arrived: the highest of a few that a short training bears (a range test).

A rate that is too low wastes images, and one that is too high forgets what arrived. Copies of few SubNets take
``STEPS`` steps at each rate, all on the same images; the rate rises, and falls to 0 as in a training. Their loss on
images that they do not train on is measured before the first step, at half of the steps and behind the last one. A rate
is borne where the loss of every copy falls in the second half, and ends no more than ``SLACK`` above its beginning: a
rate that a longer training bears well raises the loss a little at first.
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
SLACK = 0.1
"""Share by which a loss may be higher than at its beginning."""
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
    """The highest of ``config.rates`` that is borne; the lowest one where none is.

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
        for rate in reversed(config.rates):
            copies = [copy.deepcopy(student) for student in _ends(students)]
            step = lockstep(copies, _ends(resolutions), config)
            try:
                losses = _losses(copies, step, config, rate, seen, probes)
            finally:
                step.close()
            courses = list(zip(*losses, strict=True))
            is_borne = all(end < min(middle, (1 + SLACK) * begin) for begin, middle, end in courses)
            said = ", ".join(" to ".join(f"{loss:.3g}" for loss in each) for each in courses)
            logger.info("polish: rate %g is %s: the loss goes from %s", rate, "borne" if is_borne else "too high", said)
            if is_borne:
                return rate
    return config.rates[0]


def _losses(
    copies: Sequence[nn.Module],
    step: Lockstep,
    config: PolishConfig,
    rate: float,
    seen: Sequence[Step],
    probes: Sequence[Step],
) -> list[list[float]]:
    """Losses of all copies on the probes: before the first step at a rate, halfway, and behind the last step."""
    modules = nn.ModuleList(copies)
    optimizer = make_optimizer(modules, config.optimizer, rate, config.weight_decay)
    found = [_measured(step, probes)]
    for number in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (number + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * number / STEPS))
        modules.train()
        modules.zero_grad(set_to_none=True)
        step(seen[number % len(seen)])
        step.clip()
        with with_gradients(optimizer, modules):
            optimizer.step()
        if number + 1 in (STEPS // 2, STEPS):
            found.append(_measured(step, probes))
    return found


def _measured(step: Lockstep, probes: Sequence[Step]) -> list[float]:
    return torch.tensor([step.losses(probe) for probe in probes]).mean(dim=0).tolist()


def _mixed(step: Step, mix: Mixing, number: int) -> Step:
    images, labels = mix(step.images, step.labels, number)
    return replace(step, images=images, labels=labels)


def _ends(items: Sequence[Item]) -> list[Item]:
    """The first and the last of some items; one where there is but one."""
    return [items[0], items[-1]] if len(items) >= FEW else list(items)
