"""Cross entropies of evaluated SubNets, image by image: a continuous score beside right or wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from autotailor.accuracy.calibration import Calibrator, as_input, resolution_of
from autotailor.accuracy.config import CalibrationConfig
from autotailor.accuracy.determinism import deterministic
from autotailor.accuracy.fingerprint import fingerprint
from autotailor.artifacts import atomic
from autotailor.compute.placement import CPU
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.space.subnet import SubNet
from evaluated.network import Network

FloatArray = npt.NDArray[np.float64]
BATCH = 256


def losses(network: Network, subnets: Sequence[SubNet]) -> dict[str, FloatArray]:
    """Id of each SubNet to the cross entropies of the validation images ``[images]``, after recalibration.

    A file for each SubNet is kept beside the journals, in a folder for this network, these data and parameters.
    """
    module = network.net.module().eval()
    calibration = CalibrationConfig.from_section(network.run.configuration["finetune"]["calibration"])
    identity = fingerprint([repr(calibration), network.data.fingerprint], module.state_dict())
    folder = network.run.folder / f"losses_{identity[:16]}"
    folder.mkdir(exist_ok=True)
    files = {subnet: folder / f"{subnet.id}.npy" for subnet in subnets}
    if missing := [subnet for subnet, file in files.items() if not file.is_file()]:
        with deterministic(1):
            calibrator = Calibrator(network.data, calibration)
            for subnet in missing:
                found = _losses(network, module, calibrator, subnet)
                with atomic(files[subnet]) as temporary, temporary.open("wb") as stream:
                    np.save(stream, found)
    return {subnet.id: np.load(file).astype(np.float64) for subnet, file in files.items()}


@torch.no_grad()
def _losses(network: Network, module: ElasticModule, calibrator: Calibrator, subnet: SubNet) -> npt.NDArray[np.float32]:
    module.statistics = calibrator.statistics(module, subnet)  # afterwards the SubNet is active in the module
    resolution = resolution_of(subnet)
    found = [
        functional.cross_entropy(module(as_input(images, CPU, resolution)), labels, reduction="none")
        for images, labels in network.data.validation.batches(BATCH)
    ]
    return np.asarray(torch.cat(found).numpy(), dtype=np.float32)
