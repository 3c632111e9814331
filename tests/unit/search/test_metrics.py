"""Metrics that budgets limit beside the cost."""

from collections.abc import Mapping

import pytest

import autotailor
from autotailor.profiling import DeviceConfig, fusion_rules
from autotailor.search.metrics import further_metrics


@pytest.mark.parametrize(("precision", "share"), [("fp32", 1.0), ("fp16", 0.5)])
def test_activations_take_the_bytes_of_the_devices_precision(
    precision: str, share: float, resnet_net: autotailor.SuperNet
) -> None:
    device = DeviceConfig.from_section({"name": "board", "precision": precision})
    fusion, subnet = fusion_rules(device), resnet_net.largest()
    weightless = dict.fromkeys((operator.id for operator in resnet_net.operators(fusion=fusion)), 0.0)

    def known(column: str) -> Mapping[str, float]:
        return weightless

    budgets = [{"latency": 1, "peak_memory": 1}]
    found = further_metrics(resnet_net, budgets, fusion, known, device.number_bytes)["peak_memory"]
    single = resnet_net.peak_memory(fusion, resident=weightless, workspace=weightless)
    assert found.predict(subnet.to_array()) == pytest.approx(share * single.predict(subnet.to_array()))
