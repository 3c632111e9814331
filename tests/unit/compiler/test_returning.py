"""Networks that return maps or several tensors: compiled, sliced, exported, and the same in all runtimes."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import autotailor
from autotailor.export.files import save_program
from autotailor.export.verification import Arrays, arrays, as_arrays, run_exported_program, run_onnx
from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.profiling import DeviceConfig, open_runtime
from returning import NETWORKS

SUBNETS = 5
TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=NETWORKS)
def compiled(request: pytest.FixtureRequest) -> tuple[str, autotailor.SuperNet]:
    """A network with random weights and statistics as after training, because no output is then constant."""
    make, side, _ = NETWORKS[request.param]
    torch.manual_seed(0)
    network = make().eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_var.uniform_(0.5, 2.0)
            module.weight.data.uniform_(0.8, 1.2)
    return request.param, autotailor.compile(network, resolution=side, name=request.param)


def apart(found: Arrays, wanted: Arrays) -> float:
    """The largest error of an output, relative to its largest number."""
    pairs = zip(arrays(found), arrays(wanted), strict=True)
    return max(float(np.abs(y.reshape(x.shape) - x).max() / np.abs(x).max()) for y, x in pairs)


def test_every_part_can_change_and_every_head_keeps_its_channels(compiled: tuple[str, autotailor.SuperNet]) -> None:
    name, net = compiled
    _, side, count = NETWORKS[name]
    assert len(net.graph.outputs) == count
    assert RESOLUTION in net.space.positions
    assert net.static_parts == ()
    assert net.elastic_share().elastic > 0.9
    whole, least = net.parameters().predict([net.largest().to_array(), net.smallest().to_array()])
    assert least < 0.35 * whole
    shapes, given = net.shapes(net.smallest()), net.shapes(net.largest())
    smaller = net.smallest()[RESOLUTION] / side
    for output in net.graph.outputs:
        assert shapes[output][:2] == given[output][:2]
        assert shapes[output][2] == pytest.approx(given[output][2] * smaller, abs=1)


def test_files_compute_what_subnets_do(compiled: tuple[str, autotailor.SuperNet], tmp_path: Path) -> None:
    _, net = compiled
    rng, module = random.Random(0), net.module().eval()
    runtime = open_runtime(DeviceConfig.from_section({"name": "test"}))
    for subnet in (net.smallest(), *(net.sample(rng) for _ in range(SUBNETS - 1))):
        images = torch.randn(2, *net.shapes(subnet)[net.graph.input][1:], generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            wanted = as_arrays(module.activate(subnet)(images))
        net.export_onnx(subnet, tmp_path / "model.onnx")
        assert [each.name for each in onnx.load(tmp_path / "model.onnx").graph.output] == list(net.names[1:])
        save_program(net.build(subnet), images.numpy(), tmp_path / "model.pt2")
        runtime.convert(tmp_path / "model.onnx", tmp_path)
        runtime.name_blobs(tmp_path, *net.names)
        runs: dict[str, Callable[..., Arrays]] = {
            "onnx": run_onnx(tmp_path / "model.onnx"),
            "torch": run_exported_program(tmp_path / "model.pt2"),
            "ncnn": lambda x: runtime.run(tmp_path, x),
        }
        errors = {kind: apart(run(images.numpy()), wanted) for kind, run in runs.items()}
        assert max(errors.values()) < TOLERANCE, errors


def test_a_saved_supernet_returns_the_same(compiled: tuple[str, autotailor.SuperNet], tmp_path: Path) -> None:
    _, net = compiled
    net.save(tmp_path / "net.pt")
    loaded, subnet = autotailor.load(tmp_path / "net.pt"), net.sample(random.Random(1))
    image = torch.randn(net.shapes(subnet)[net.graph.input], generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found, wanted = (as_arrays(each.build(subnet)(image)) for each in (loaded, net))
    assert loaded.names == net.names
    assert apart(found, wanted) == 0.0
