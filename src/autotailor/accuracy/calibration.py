"""BatchNorm recalibration: every SubNet that is evaluated or exported gets its own statistics."""

from __future__ import annotations

import torch

from autotailor.accuracy.config import CalibrationConfig
from autotailor.accuracy.errors import AccuracyError
from autotailor.compute.placement import CPU, device_of, put
from autotailor.data.contract import check_images
from autotailor.data.splits import DataSplits, sized
from autotailor.ir.alternatives.rebuilding import copied_again
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.execution.batch_norm import adopt, normalisations, placeholders
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet


def resolution_of(subnet: SubNet) -> int:
    """Resolution of a SubNet's images, in pixels; 0 where the space has no variable for the resolution."""
    return int(subnet[RESOLUTION]) if RESOLUTION in subnet.space.positions else 0


def as_input(images: torch.Tensor, device: torch.device, resolution: int = 0) -> torch.Tensor:
    """Images as a network reads them: on its device, of its resolution, channels last.

    Args:
        images: ``[n, 3, h, w]``.
        device: of the network.
        resolution: side to which images are resized, in pixels; 0 leaves their size.

    Raises:
        DataError: the images have another form.
    """
    check_images(images, "the data")
    return sized(put(images, device), resolution).contiguous(memory_format=torch.channels_last)


class Calibrator:
    """Recalibrates BatchNorm on fixed images: the first images of the training stream's first epoch.

    Args:
        data: the splits; the training stream gives the images.
        config: number of images, and their batch size.
    """

    def __init__(self, data: DataSplits, config: CalibrationConfig) -> None:
        if len(data.train) < 2:
            raise AccuracyError(f"data {data.name}: calibration needs at least 2 training images")
        size = min(config.batch_size, config.images, len(data.train))
        self._batches: list[torch.Tensor] = []
        self._copies: dict[torch.device, list[torch.Tensor]] = {}
        for images, _ in data.train.batches(0, size):
            self._batches.append(images)
            if len(self._batches) * size >= config.images:
                break

    @torch.no_grad()
    def statistics(self, module: ElasticModule, subnet: SubNet) -> Statistics:
        """Means and variances of one SubNet's BatchNorm layers over all calibration images, where the module is.

        Afterwards the SubNet is active in the module, and the module has no statistics set.

        Raises:
            AccuracyError: the network has re-inserted BatchNorm that ``adopt`` has not calibrated yet.
        """
        self.check(module)
        return self._collect(module, subnet, stored=False)

    def check(self, module: ElasticModule) -> None:
        """Raises AccuracyError where a network has re-inserted BatchNorm that ``adopt`` has not calibrated yet."""
        if placeholders(module.elastic.graph):
            raise AccuracyError(
                f"network {module.elastic.graph.name}: BatchNorm was re-inserted and is not calibrated yet; "
                f"call accuracy.adopt_statistics first (the rule finetune does so itself)"
            )

    def adopt(self, net: SuperNet, device: torch.device = CPU, *, every: bool = False) -> SuperNet:
        """Calibrates re-inserted BatchNorm on the largest SubNet, whose outputs stay the same.

        A SuperNet without re-inserted BatchNorm is returned unchanged.

        Args:
            net: the SuperNet.
            device: that computes.
            every: also calibrates BatchNorm that came with the network; outputs then stay the same up to rounding.
        """
        if not (normalisations(net.graph) if every else placeholders(net.graph)):
            return net
        statistics = self._collect(net.module().eval().to(device), net.largest(), stored=True)
        arrays = {name: (mean.cpu().numpy(), variance.cpu().numpy()) for name, (mean, variance) in statistics.items()}
        adopted = adopt(net.graph, arrays, every=every)
        return net.with_weights({**adopted.weights, **copied_again(adopted)})

    @torch.no_grad()
    def _collect(self, module: ElasticModule, subnet: SubNet, stored: bool) -> Statistics:
        module.activate(subnet)
        resolution, device = resolution_of(subnet), device_of(module)
        batches = self.images_on(device) if stored else self.images_for(module)
        with module.collecting(stored) as collector:
            for images in batches:
                module(as_input(images, device, resolution))
        return collector.statistics()

    def images_for(self, module: ElasticModule) -> list[torch.Tensor]:
        """The calibration images of SubNets; the first batch alone where the given statistics stay whatever is seen."""
        batches = self.images_on(device_of(module))
        return batches if module.elastic.recalibrated else batches[:1]

    def images_on(self, device: torch.device) -> list[torch.Tensor]:
        """The calibration images on a device, batch by batch; an accelerator keeps them from the first SubNet on."""
        if device not in self._copies:
            self._copies[device] = [put(images, device) for images in self._batches]
        return self._copies[device]


def calibrate(module: ElasticModule, subnet: SubNet, data: DataSplits, config: CalibrationConfig) -> Statistics:
    """Statistics of one SubNet; for many SubNets, make one ``Calibrator`` and call its ``statistics``."""
    return Calibrator(data, config).statistics(module, subnet)


def adopt_statistics(net: SuperNet, data: DataSplits, config: CalibrationConfig) -> SuperNet:
    """``Calibrator.adopt``: gives re-inserted BatchNorm the statistics of the largest SubNet."""
    return Calibrator(data, config).adopt(net) if placeholders(net.graph) else net
