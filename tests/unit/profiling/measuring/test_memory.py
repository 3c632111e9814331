"""Peak memory: what is predicted from the LUT against a process that runs only that SubNet."""

from pathlib import Path

import numpy as np
import pytest
import torchvision

import autotailor
from autotailor.profiling import DeviceConfig, measure_baseline, measure_memory, open_runtime, profile
from autotailor.profiling.measuring.session import Session

DEVICE = DeviceConfig.from_section({"name": "test", "precision_target": 0.9, "min_minutes": 0, "warmup": 1})
RUNTIME = open_runtime(DEVICE)


@pytest.mark.parametrize("name", [pytest.param("resnet18", marks=pytest.mark.sweep), "mobilenet_v2"])
def test_a_subnet_takes_what_is_predicted(name: str, tmp_path: Path) -> None:
    net = autotailor.compile(torchvision.models.get_model(name), resolution=128)
    subnets = (net.largest(), net.smallest())
    operators = list(dict.fromkeys(f for s in subnets for f in net.operators(s, RUNTIME.fusion)))
    lut = profile(operators, DEVICE, tmp_path, net=net)
    resident, workspace = lut.column("resident_weight_mb"), lut.column("workspace_mb")
    memory = net.peak_memory(RUNTIME.fusion, resident=resident, workspace=workspace)
    predicted = memory.predict(np.stack([subnet.to_array() for subnet in subnets]))
    baseline = measure_baseline(DEVICE)
    with Session(DEVICE) as session:
        for subnet, expected in zip(subnets, predicted, strict=True):
            sequence, shape = net.sequence(subnet, RUNTIME.fusion), net.shapes(subnet)[net.graph.input]
            network = RUNTIME.in_place(subnet.id, sequence, shape[1:], ())
            assert network is not None
            found = session.weigh(network).running_mb - baseline
            assert found == pytest.approx(expected, rel=0.25, abs=1.0)  # more: freed memory that is not given back


def test_converted_files(tmp_path: Path) -> None:
    (tmp_path / RUNTIME.files[0]).write_text(
        "7767517\n2 2\nInput in0 0 1 in0\nInnerProduct fc 1 1 in0 out0 0=4096 1=0 2=4194304\n"
    )
    (tmp_path / RUNTIME.files[1]).write_bytes(bytes(4 + 4 * 4194304))
    found = measure_memory({"fc": (tmp_path, (1, 1024))}, DEVICE)
    assert found["fc"].loading_mb >= found["fc"].running_mb - 1
    assert 16 < found["fc"].running_mb < 20
