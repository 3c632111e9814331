"""Prepares a trained network for its SubNets without any training: statistics, moments, and the order of channels.

1. BatchNorm takes on the statistics of the user's pictures, which changes nothing (``ir/execution/batch_norm.py``).
2. One pass over training pictures, without labels, collects what readers read (``ir/moments.py``). Slices follow in
   closed form, linear streams are rotated (``ir/execution/rotation.py``), and channels are sorted by what leaving them
   out would change.
3. How much of a SubNet's statistics comes from its own recalibration is decided on other crops, by how far the outputs
   of random SubNets are from the network's own.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional

from autotailor.accuracy.calibration import Calibrator, as_input, resolution_of
from autotailor.accuracy.config import CalibrationConfig, MomentsConfig
from autotailor.accuracy.determinism import deterministic
from autotailor.compute.accelerator import resolve
from autotailor.compute.placement import device_of
from autotailor.data.splits import DataSplits
from autotailor.ir.execution.batch_norm import normalisations
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.graph import Outputs, tensors
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.task.interface import Task
from autotailor.task.registry import find, of

SHARES = (0.0, 0.5)
"""Shares of recalibration that are compared; on a pretrained network all from 0.25 to 1 gave the same divergence."""
ROUNDING = 1e-4
"""Largest share of the largest output by which a rotation may change an output."""
TRIED, ANEW, SEEN = 4, 256, 128
"""Random SubNets on which they are compared, and most pictures for the statistics and for the outputs of each."""


@dataclass(frozen=True)
class Preparation:
    """A SuperNet that was prepared.

    Attributes:
        net: with its moments; its largest SubNet computes the same as before, up to rounding.
        divergences: share of recalibration to the mean divergence in nats of random SubNets' outputs from those of the
            largest one; empty where the network has no BatchNorm.
    """

    net: SuperNet
    divergences: dict[float, float]


def prepare(net: SuperNet, data: DataSplits, config: MomentsConfig, calibration: CalibrationConfig) -> Preparation:
    """A SuperNet whose slices follow in closed form from its moments on training pictures.

    Args:
        net: as compiled.
        data: the splits; the training stream gives the pictures.
        config: of the moments. With 0 images the SuperNet stays as it is.
        calibration: of the SubNets on which the share of recalibration is decided.

    Raises:
        AccuracyError: there are fewer than two training pictures.
    """
    if not config.images:
        return Preparation(net, {})
    device = resolve(config.accelerator)
    calibrator = Calibrator(data, CalibrationConfig(config.images, config.batch_size))
    with deterministic(config.threads, device):
        net = calibrator.adopt(net, device, every=True)
        net = _collected(net, calibrator, device, config.ridge)
        net = (_rotated(net, calibrator, device) if config.rotate else net).sort_channels()
        if not normalisations(net.graph) or not len(net.space):
            return Preparation(net, {})
        anew = Calibrator(data, replace(calibration, images=min(calibration.images, ANEW)))
        divergences = _divergences(net, anew, _unseen(data, config), device, config.seed, of(data))
    share = min(divergences, key=lambda each: divergences[each])
    said = ", ".join(f"{each:g}: {value:.3f}" for each, value in divergences.items())
    unit = "nats" if net.num_classes and of(data).logits else "of the outputs' variance"
    logging.info("divergence of random SubNets by the share of statistics that is estimated anew, %s: %s", unit, said)
    return Preparation(net.recalibrated(share), divergences)


def _collected(net: SuperNet, calibrator: Calibrator, device: torch.device, ridge: float) -> SuperNet:
    """The SuperNet with its moments, and with the alternatives of its blocks solved, on the calibrator's images."""
    collector = MomentCollector(net.elastic).to(device)
    with torch.no_grad():
        for images in calibrator.images_on(device):
            collector(as_input(images, device))
    return net.with_weights(collector.alternatives(ridge)).with_moments(collector.moments(ridge))


def _rotated(net: SuperNet, calibrator: Calibrator, device: torch.device) -> SuperNet:
    """The SuperNet with its linear streams rotated, where its outputs for a batch stay, up to rounding."""
    turned = net.rotated()
    if not turned.rotations:
        return net
    images = calibrator.images_on(device)[:1]
    before, after = (
        answers(each.module(logits=True).eval().to(device), each.largest(), images) for each in (net, turned)
    )
    pairs = zip(tensors(before), tensors(after), strict=True)
    differences = [(one - other).abs().max() / one.abs().max().clamp_min(1e-30) for one, other in pairs]
    apart = float(torch.stack(differences).max())
    streams = f"{len(turned.rotations)} streams in the coordinates that their readers need"
    if not apart <= ROUNDING:  # nor NaN
        logging.warning("%s change the network's outputs by %.1g of the largest: they stay as they are", streams, apart)
        return net
    logging.info("%s; the network's outputs stay within %.1g of the largest", streams, apart)
    return calibrator.adopt(turned, device, every=True)


def _unseen(data: DataSplits, config: MomentsConfig) -> list[torch.Tensor]:
    """Batches of training pictures; crops of the second epoch, most of which the moments have not seen."""
    batches: list[torch.Tensor] = []
    for images, _ in data.train.batches(1, min(config.batch_size, len(data.train))):
        batches.append(images)
        if sum(map(len, batches)) >= min(config.images, SEEN):
            break
    return batches


def _divergences(
    net: SuperNet, calibrator: Calibrator, images: Sequence[torch.Tensor], device: torch.device, seed: int, task: Task
) -> dict[float, float]:
    """Mean divergence of the same random SubNets for each share."""
    rng = random.Random(seed)
    subnets = [net.sample(rng) for _ in range(TRIED)]
    module = net.module(logits=task.logits).eval().to(device)
    whole = answers(module, net.largest(), images)
    of_logits: Callable[[Any, Any], float] = divergence if net.num_classes else distance
    apart = of_logits if task.logits else scatter
    means = {}
    for share in SHARES:
        module = net.recalibrated(share).module(logits=task.logits).eval().to(device)
        total = 0.0
        for subnet in subnets:
            statistics = calibrator.statistics(module, subnet)
            total += apart(answers(module, subnet, images, statistics), whole)
        means[share] = total / len(subnets)
    return means


@torch.no_grad()
def answers(
    module: ElasticModule, subnet: SubNet, images: Sequence[torch.Tensor], statistics: Statistics | None = None
) -> Outputs:
    """What a SubNet returns for batches of images, on the processor: logits ``[n, classes]`` of a classifier."""
    module.activate(subnet).eval()
    module.statistics = statistics
    device, resolution = device_of(module), resolution_of(subnet)
    outputs = [tensors(module(as_input(batch, device, resolution))) for batch in images]
    whole = tuple(torch.cat([each.float().cpu() for each in parts]) for parts in zip(*outputs, strict=True))
    return whole if len(whole) > 1 else whole[0]


def distance(outputs: Outputs, reference: Outputs) -> float:
    """Mean distance of outputs from the wanted ones, as a share of their variance (``task.tasks.outputs``)."""
    return 1 - float(find("outputs").agree(outputs, reference).double().mean())


def scatter(outputs: Outputs, reference: Outputs) -> float:
    """Squared distance of outputs from the wanted ones ``[n, ...]``, over the scatter of these around their mean."""
    said, true = (torch.cat([y.double().flatten(1) for y in tensors(each)], 1) for each in (outputs, reference))
    return float((said - true).square().sum() / (true - true.mean(0)).square().sum())


def divergence(logits: torch.Tensor, reference: torch.Tensor) -> float:
    """Mean Kullback-Leibler divergence of the wanted answers from some answers ``[n, classes]``, in nats."""
    said = functional.log_softmax(logits.double(), dim=1)
    true = functional.log_softmax(reference.double(), dim=1)
    return float(functional.kl_div(said, true, reduction="batchmean", log_target=True))
