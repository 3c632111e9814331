"""What all parts of a race share: the SuperNet, the pictures, the parameters and the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from autotailor.accuracy.calibration import Calibrator
from autotailor.accuracy.determinism import deterministic
from autotailor.data.splits import DataSplits
from autotailor.finetuning.polishing.config import PolishConfig
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.task.registry import of


@dataclass(frozen=True, eq=False)
class Course:
    """Where SubNets race.

    Attributes:
        net: the trained SuperNet, whose weights SubNets inherit.
        data: the splits; the training set trains, and the validation set judges.
        config: of the race.
        device: that computes.
    """

    net: SuperNet
    data: DataSplits
    config: PolishConfig
    device: torch.device

    def inheriting(self, net: SuperNet, subnets: Sequence[SubNet]) -> list[Graph]:
        """SubNets with the weights that they inherit from a SuperNet, and calibrated statistics."""
        module, calibrator = net.module().eval(), Calibrator(self.data, self.config.calibration)
        module.to(self.device)
        with deterministic(self.config.threads, self.device):
            return [net.slice(subnet, calibrator.statistics(module, subnet)) for subnet in subnets]

    def networks(self, graphs: Sequence[Graph]) -> list[GraphModule]:
        """Graphs as networks of the task, on the device."""
        return [GraphModule(graph, logits=of(self.data).logits).to(self.device) for graph in graphs]
