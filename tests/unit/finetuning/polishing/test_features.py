"""What the classifier reads is found in the graph, and compared with the teacher's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import autotailor
import networks
from autotailor.finetuning.polishing.features import Featured, feature_loss, featured
from autotailor.ir.execution.head import find_features
from autotailor.ir.execution.modules.graph import GraphModule


@pytest.mark.parametrize("name", ["resnet", "mobilenet"])
def test_the_last_map_makes_the_logits_of_the_features(name: str) -> None:
    net = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    network = net.build(net.smallest(), logits=True)
    assert isinstance(network, GraphModule)
    images = torch.randn(3, 3, int(net.smallest()["resolution"]), int(net.smallest()["resolution"]))
    with torch.no_grad():
        logits, features = featured(network)(images)
        assert torch.equal(logits, network(images))
    (last,) = (node for node in net.graph.nodes if find_features(net.graph) in net.graph.activations(node))
    assert last.kind in ("Gemm", "MatMul", "Conv")
    assert len(features) == 3
    assert feature_loss(features, features) == 0
    assert feature_loss(features + features.std(), features) == pytest.approx(1.0, rel=1e-3)


def test_a_network_without_a_graph_has_no_features() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    assert featured(network) is network
    assert not isinstance(featured(network), Featured)
