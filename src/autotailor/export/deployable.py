"""What is exported: a SubNet as a network of its own, and the module that exported files are compared with."""

from dataclasses import dataclass

from torch import nn

from autotailor.accuracy import CalibrationConfig, calibrate
from autotailor.data import DataSplits
from autotailor.finetuning.polishing import Exported
from autotailor.ir.execution.modules.elastic import ElasticModule
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.modules.statistics import Statistics
from autotailor.ir.graph import Graph
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet


@dataclass(frozen=True, eq=False)
class Deployable:
    """A SubNet with the weights that it is exported with.

    Attributes:
        net: the SuperNet.
        subnet: the SubNet.
        graph: the standalone network.
        reference: a module in evaluation mode, a batch of images to the outputs; files must compute what it does.
        weights: ``inherited`` from the SuperNet, or ``polished``: trained for this SubNet alone.
    """

    net: SuperNet
    subnet: SubNet
    graph: Graph
    reference: nn.Module
    weights: str

    @property
    def source(self) -> str:
        """What the files are compared with, for messages."""
        return "the SuperNet" if self.weights == "inherited" else "the polished SubNet"


def inherited(net: SuperNet, subnet: SubNet, statistics: Statistics) -> Deployable:
    """A SubNet with the SuperNet's weights and its own recalibrated statistics; the SuperNet is the reference.

    The SuperNet computes on shared weights and the exported graph on sliced ones. The comparison therefore also tests
    the slicing.
    """
    module = net.module().activate(subnet).eval()
    module.statistics = {node: (mean.cpu(), variance.cpu()) for node, (mean, variance) in statistics.items()}
    return Deployable(net, subnet, net.slice(subnet, statistics), module, "inherited")


def polished(net: SuperNet, subnet: SubNet, graph: Graph) -> Deployable:
    """A SubNet with weights of its own: ``graph`` is its sliced graph with these weights."""
    return Deployable(net, subnet, graph, GraphModule(graph).eval(), "polished")


def deployable(
    net: SuperNet, exported: Exported, module: ElasticModule, data: DataSplits, calibration: CalibrationConfig
) -> Deployable:
    """A SubNet as the rule ``polish`` hands it on: with weights of its own, or with those that it inherits.

    Args:
        net: the SuperNet.
        exported: the SubNet with its origin of weights.
        module: of the SuperNet, in evaluation mode, which calibrates the statistics of inherited weights.
        data: the splits; the training images calibrate.
        calibration: parameters.
    """
    if exported.graph is None:
        return inherited(net, exported.subnet, calibrate(module, exported.subnet, data, calibration))
    return polished(net, exported.subnet, exported.graph)
