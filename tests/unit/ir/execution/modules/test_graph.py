"""Static parts run through onnx2torch, with their weights fixed."""

import torch
from torch.nn import functional

import autotailor
from autotailor.ir.execution.modules.graph import bypass


def test_an_operator_keeps_its_weights(resnet_net: autotailor.SuperNet) -> None:
    graph = resnet_net.graph
    node = next(node for node in graph.nodes if node.kind == "Conv")
    module = bypass(graph, node)
    weights = list(module.parameters())
    assert weights
    assert not any(weight.requires_grad for weight in weights)
    x = torch.randn(graph.shapes[node.inputs[0]])
    conv, *bias = (torch.from_numpy(graph.weights[name].copy()) for name in node.inputs[1:])
    expected = functional.conv2d(x, conv, bias[0] if bias else None, stride=2, padding=1)
    torch.testing.assert_close(module(x), expected)
