"""Metrics of SubNets against what is counted in their own networks."""

import numpy as np
import pytest

import autotailor
import networks
from acceptance import checks
from autotailor.ir.errors import GraphError
from conv_fusion import CONV_RULES


def test_metrics_agree_with_the_built_networks(any_net: autotailor.SuperNet) -> None:
    parameters, macs = any_net.parameters(), any_net.macs()
    for subnet in checks.subnets(any_net, 4):
        built = any_net.build(subnet)
        counted = sum(p.numel() for p in built.parameters())
        assert parameters.predict(subnet.to_array())[0] * 1e6 == pytest.approx(counted)
        shapes = any_net.shapes(subnet)
        by_operator = [
            int(np.prod(shapes[n.outputs[0]]))
            * int(
                shapes[n.inputs[0]][-1] if n.kind == "MatMul" else np.prod(built.graph.weights[n.inputs[1]].shape[1:])
            )
            for n in built.graph.nodes
            if n.kind in ("Conv", "Gemm", "MatMul")
        ]
        assert macs.predict(subnet.to_array())[0] * 1e6 == pytest.approx(sum(by_operator))


def test_latency_is_the_sum_over_operators(resnet_net: autotailor.SuperNet) -> None:
    features = resnet_net.operators(fusion=CONV_RULES)
    table = {f.id: float(i + 1) for i, f in enumerate(features)}
    metric = resnet_net.latency(table, CONV_RULES)
    for subnet in checks.subnets(resnet_net, 4):
        graph = autotailor.SuperNet.of(resnet_net.slice(subnet), {})
        expected = sum(table[p.features[()].id] for p in graph.places(CONV_RULES))
        assert metric.predict(subnet.to_array())[0] == pytest.approx(expected)
    with pytest.raises(autotailor.AutoTailorError, match="LUT lacks 1 of the"):
        resnet_net.latency({k: v for k, v in table.items() if k != features[0].id}, CONV_RULES)


def test_unavailable_energy_is_said_and_never_zero() -> None:
    net = autotailor.compile(networks.TinyResNet(), resolution=32)
    known = {f.id: 2.0 for f in net.operators(fusion=CONV_RULES)}
    assert net.energy(known, CONV_RULES).predict(net.largest().to_array())[0] == 2.0 * len(net.places(CONV_RULES))
    known.popitem()
    with pytest.raises(GraphError, match=r"lacks 1 of .*unavailable"):
        net.energy(known, CONV_RULES)
