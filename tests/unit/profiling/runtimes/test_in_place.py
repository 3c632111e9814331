"""Operators timed where they stand: the network that is written, the arithmetic, and measuring for real."""

from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import nn

import autotailor
from autotailor.ir.fusion.sequence import ends_of
from autotailor.profiling import DeviceConfig, Store, open_runtime, profile
from autotailor.profiling.networks.validation import input_shape
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.runtimes.in_place import reference_operators
from autotailor.profiling.runtimes.ncnn.claims import claims
from returning import Pan

DEVICE = DeviceConfig.from_section({"name": "test", "precision_target": 0.5, "drift": 10, "min_minutes": 0})
RUNTIME = open_runtime(DEVICE)


def program(net: autotailor.SuperNet, subnet: autotailor.SubNet) -> Program:
    written = RUNTIME.in_place(subnet.id, net.sequence(subnet, RUNTIME.fusion), input_shape(net, subnet)[1:], ())
    assert written is not None
    return written


def test_the_written_network_has_the_layers_that_pnnx_writes(any_net: autotailor.SuperNet, tmp_path: Path) -> None:
    for subnet in (any_net.largest(), any_net.smallest()):
        sequence = any_net.sequence(subnet, RUNTIME.fusion)
        written = program(any_net, subnet)
        path = tmp_path / "written.param"
        path.write_text(written.param or "")
        bill = claims(path, [operator.feature for operator in sequence], input_shape(any_net, subnet))
        assert bill.complete, (bill.unclaimed, bill.idle)
        assert sorted(key for key, _ in written.steps) == sorted(operator.feature.id for operator in sequence)


def test_all_outputs_of_a_network_are_run_and_timed(tmp_path: Path) -> None:
    net = autotailor.compile(Pan().eval(), resolution=64)
    sequence = net.sequence(net.smallest(), RUNTIME.fusion)
    written = program(net, net.smallest())
    assert sorted(key for key, _ in written.steps) == sorted(operator.feature.id for operator in sequence)
    path = tmp_path / "written.param"
    path.write_text(written.param or "")
    assert len(ends_of(sequence)) == 3
    bill = claims(path, [operator.feature for operator in sequence], input_shape(net, net.smallest()))
    assert bill.complete, (bill.unclaimed, bill.idle)
    heads = [operator.feature for operator in sequence[-2:]]
    lut = profile(heads, DEVICE, tmp_path, net=net)
    assert {feature.id for feature in heads} <= {row.feature.id for row in lut}


class Excited(nn.Module):
    """A convolution whose channels are scaled by what their means say (squeeze and excitation)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 16, 3, 2, 1), nn.Linear(16, 4)
        self.scale = nn.Sequential(nn.Conv2d(16, 8, 1), nn.ReLU(), nn.Conv2d(8, 16, 1), nn.Hardsigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.stem(x)
        return self.head((y * self.scale(y.mean((2, 3), keepdim=True))).mean((2, 3)))


def test_convolutions_of_one_pixel_are_the_inner_products_that_pnnx_writes(tmp_path: Path) -> None:
    net = autotailor.compile(Excited().eval(), resolution=16)
    net.export_onnx(net.largest(), tmp_path / "model.onnx")
    RUNTIME.convert(tmp_path / "model.onnx", tmp_path)
    texts = program(net, net.largest()).param or "", (tmp_path / "model.ncnn.param").read_text()
    kinds = [Counter(line.split()[0] for line in text.splitlines()[2:]) for text in texts]
    assert kinds[0] == kinds[1]
    assert (kinds[0]["InnerProduct"], kinds[0]["Convolution"]) == (3, 1)


def test_each_step_runs_one_operator(resnet_net: autotailor.SuperNet) -> None:
    written = program(resnet_net, resnet_net.smallest())
    lines = [line.split() for line in (written.param or "").splitlines()[2:]]
    computing = [line for line in lines if line[0] not in {"Input", "Split"}]
    assert len(written.steps) == len(computing)
    assert written.steps[-1][1] == written.long
    assert len({blob for _, blob in written.steps}) == len(written.steps)


def test_operators_of_a_space_are_measured_in_subnets_that_hold_them(
    resnet_net: autotailor.SuperNet, tmp_path: Path
) -> None:
    judged = (resnet_net.largest(), resnet_net.smallest())
    wanted = list(dict.fromkeys(f for s in judged for f in resnet_net.operators(s, RUNTIME.fusion)))
    lut = profile(wanted, DEVICE, tmp_path, net=resnet_net, avoid=judged)
    rows = {row.feature.id: row for row in lut}
    assert rows.keys() >= {feature.id for feature in wanted}
    known = {key: row.latency_ms for key, row in rows.items()}
    assert all(0 < known[feature.id] < 5 for feature in wanted)
    weighed = [rows[feature.id].resident_weight_mb for feature in wanted if feature.kind == "Conv"]
    assert max(weight for weight in weighed if weight is not None) > 0
    store = Store(tmp_path)
    device = store.devices()[0].fingerprint.id
    before = len(store.records(device))
    profile(wanted, DEVICE, tmp_path, net=resnet_net, avoid=judged)
    assert len(store.records(device)) == before


def test_a_runtime_that_cannot_tell_operators_apart_says_so(resnet_net: autotailor.SuperNet) -> None:
    runtime = open_runtime(DeviceConfig.from_section({"name": "test", "runtime": "torch"}))
    subnet = resnet_net.smallest()
    assert runtime.in_place(subnet.id, resnet_net.sequence(subnet, runtime.fusion), (3, 32, 32), ()) is None


def test_the_anchor_is_a_network_that_ncnn_runs(tmp_path: Path) -> None:
    feature = RUNTIME.anchor()
    anchor = RUNTIME.replicas(feature)
    assert anchor.key == feature.id
    assert anchor.short is None
    path = tmp_path / "reference.param"
    path.write_text(anchor.param or "")
    features = [operator.feature for operator in reference_operators()]
    assert claims(path, features, (1, *anchor.inputs[0])).complete
    macs = sum(np.prod(f.weights[0][1:]) * np.prod(f.outputs[0]) for f in features if f.weights)
    assert 1.0e8 < macs < 1.2e8
