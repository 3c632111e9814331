"""The files of polishing: the SubNets to export, and the weights of those that have weights of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autotailor.artifacts import atomic, read_json, write_json
from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.polishing.race import Polished, Weights
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet

SCHEMA = 1
INHERITED, POLISHED = "inherited", "polished"


@dataclass(frozen=True)
class Exported:
    """One SubNet to export.

    Attributes:
        subnet: the SubNet.
        graph: the standalone network with the SubNet's own weights; None where the SubNet inherits the SuperNet's.
    """

    subnet: SubNet
    graph: Graph | None = None

    @property
    def weights(self) -> str:
        """``inherited`` or ``polished``."""
        return INHERITED if self.graph is None else POLISHED


def write_exported(json: Path, weights: Path, exports: Mapping[str, Polished]) -> None:
    """Writes both files; an interrupted write leaves neither half written.

    Args:
        json: path of ``polish.json``.
        weights: path of ``polished.pt``, a file for ``torch.load(weights_only=True)``.
        exports: SubNets by name of the export.
    """
    own = {name: each.weights for name, each in exports.items() if each.weights is not None}
    content = {name: {"subnet": exports[name].subnet.id, "weights": _tensors(each)} for name, each in own.items()}
    with atomic(weights) as temporary:
        torch.save({"schema_version": SCHEMA, "subnets": content}, temporary)
    write_json(
        json,
        {
            "subnets": {name: each.subnet.assignment for name, each in exports.items()},
            "weights": {name: POLISHED if name in own else INHERITED for name in exports},
            "accuracy_validation": {
                name: {INHERITED: each.inherited, POLISHED: each.polished} for name, each in exports.items()
            },
            "images": max((each.images for each in exports.values()), default=0),
        },
    )


def read_exported(json: Path, weights: Path, net: SuperNet) -> dict[str, Exported]:
    """Reads what ``write_exported`` wrote: SubNets by name of the export.

    Raises:
        TrainingError: a file cannot be read, or the weights do not fit the SubNet.
    """
    try:
        said = read_json(json)
        named, kinds = said["subnets"], said["weights"]
        own = torch.load(weights, weights_only=True)
        subnets = {name: SubNet.from_assignment(net.space, assignment) for name, assignment in named.items()}
        return {
            name: Exported(subnet, _graph(net, subnet, own["subnets"][name]) if kinds[name] == POLISHED else None)
            for name, subnet in subnets.items()
        }
    except TrainingError:
        raise
    except Exception as error:  # torch.load raises many kinds of errors for a damaged file
        raise TrainingError(
            f"{json} and {weights} do not hold the SubNets to export ({error}); run the rule polish again"
        ) from error


def _graph(net: SuperNet, subnet: SubNet, entry: Mapping[str, Any]) -> Graph:
    """A SubNet's sliced graph with weights of its own."""
    sliced = net.slice(subnet)
    weights = {name: tensor.numpy() for name, tensor in entry["weights"].items()}
    shapes = {name: weight.shape for name, weight in weights.items()}
    if entry["subnet"] != subnet.id or shapes != {name: weight.shape for name, weight in sliced.weights.items()}:
        raise TrainingError(f"the polished weights of SubNet {subnet.id} do not fit it; run the rule polish again")
    return sliced.with_weights(weights)


def _tensors(weights: Weights) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(weight)) for name, weight in weights.items()}
