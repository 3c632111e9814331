"""The exported SubNets with exits as a pool, whose server answers at a deadline with the last exit that is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotailor.exits.answers import Costs, Floats
from autotailor.exits.files import GUARANTEED
from autotailor.exits.making import Headed, choices_of
from autotailor.export.verification import arrays, as_arrays
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.pool.exported import ExportedMember
from autotailor.pool.making import Run, facts_of
from autotailor.pool.writing import OWN, Facts, Origin, write_pool
from autotailor.prediction import Measured
from autotailor.profiling import LUT, DeviceConfig, Measurement, exporting_runtime
from autotailor.serving.files.exits import OUTPUTS, Confidence, Exit, Thresholds

FOLDER = "pool"
"""The folder of the pool, beside the folders of the SubNets."""


def pool_exits(
    folder: Path,
    net: SuperNet,
    subnets: Mapping[str, SubNet],
    headed: Mapping[str, Headed],
    content: Mapping[str, Any],
    images: Mapping[str, Floats],
    lut: LUT,
    device: DeviceConfig,
    origin: Origin,
) -> dict[str, Any]:
    """Writes the pool of networks whose ncnn files lie beside it; members are called as their exports.

    Args:
        folder: of the exits' files, with a folder for each export.
        net: the SuperNet, with whose tensors members share what they have not trained alone.
        subnets: by name of the export.
        headed: the same with exits.
        content: of ``exits.json``.
        images: that ncnn's answers are compared for, by name, each ``[n, channels, height, width]``.
        lut: of the device.
        device: the device.
        origin: of the pool, see ``pool.making.origin_of``.

    Returns:
        The content of ``pool.json``.

    Raises:
        PoolError: a member does not compute what its network computes in PyTorch.
    """
    probabilities = any(each["probabilities"] for each in content["networks"].values())
    confidence = Confidence(content["confidence"], OUTPUTS[probabilities])
    run = Run(net, None, None, {}, lut, device)
    members = []
    for name, each in headed.items():
        exported = _exported(folder / name, name, subnets[name], each, images[name])
        members.append((exported, _facts(run, subnets[name], each, content["networks"][name], _rows(content, name))))
    return write_pool(folder / FOLDER, net, members, replace(origin, confidence=confidence, weights=OWN))


def _exported(folder: Path, name: str, subnet: SubNet, each: Headed, images: Any) -> ExportedMember:
    with torch.no_grad():
        answers = arrays(as_arrays(GraphModule(each.network.graph).eval()(torch.from_numpy(images))))
    *exits, logits = (answer.reshape(len(images), -1) for answer in answers)
    param, weights = (folder / file for file in exporting_runtime().files)
    return ExportedMember(subnet, param, weights, images, logits, tuple(exits), name)


def _rows(content: Mapping[str, Any], name: str) -> dict[str, Mapping[str, float | None]]:
    """The thresholds of an export by name: of budgets for which it is chosen, and the guaranteed ones."""
    chosen = choices_of(content["budgets"], name)
    rows = {key.replace(" ", ""): row["thresholds"] for key, row in chosen.items() if row["thresholds"]}
    safe = content["networks"][name]["guaranteed"]
    return rows | ({GUARANTEED: safe["thresholds"]} if safe and safe["thresholds"] else {})


def _facts(
    run: Run, subnet: SubNet, each: Headed, network: Mapping[str, Any], rows: Mapping[str, Mapping[str, float | None]]
) -> Facts:
    """What is known of a member: latencies with all its exits, accuracies on the validation set."""
    costs = Costs(tuple(network["segments"]), tuple(network["heads"]))
    reach = costs.reach([True] * len(costs.heads))
    right = 100 * each.validation.right
    error = float(right[:, -1].std() / np.sqrt(len(right)))
    evaluated = replace(run, evaluated={subnet.id: Measured.alone(float(right[:, -1].mean()), error)})
    whole = Measurement(subnet.id, float(reach[-1]), 0.0, 0, float(reach[-1]))
    (facts,) = facts_of(evaluated, [subnet], [whole])
    exits = tuple(
        Exit(name, float(right[:, number].mean()), float(reach[number]), f"out{number}")
        for number, name in enumerate(each.names)
    )
    thresholds: tuple[Thresholds, ...] = tuple(
        (name, tuple(row.get(exit_.name) for exit_ in exits)) for name, row in rows.items() if exits
    )
    return replace(
        facts, measured_ms=network["worst_measured"], measured_error_ms=None, exits=exits, thresholds=thresholds
    )
