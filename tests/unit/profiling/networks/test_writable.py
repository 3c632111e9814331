"""What a runtime cannot run is said of the whole space, each kind of operator once, with who can."""

import pytest
import torch
from torch import nn

import autotailor
from autotailor import profiling
from autotailor.profiling import DeviceConfig, ProfilingError
from autotailor.profiling.runtimes.ncnn import preparation as ncnn_preparation
from windows import Windows

HOST = DeviceConfig.from_section({"name": "host"})


@pytest.fixture(scope="module")
def windowed() -> autotailor.SuperNet:
    torch.manual_seed(0)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
    network = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), Windows(16), Windows(16), nn.Conv2d(16, 16, 1), head)
    return autotailor.compile(network.eval(), {}, name="windowed", resolution=16)


def test_what_is_missing_is_listed_once_for_each_kind_with_a_node_and_who_can(windowed: autotailor.SuperNet) -> None:
    with pytest.raises(ProfilingError) as caught:
        profiling.check_writable(windowed, HOST)
    head, *listed, advice = str(caught.value).splitlines()
    assert head == "device host: the runtime ncnn cannot run the network windowed. It lacks"
    kinds = [line.split()[0] for line in listed]
    assert len(kinds) == len(set(kinds))
    assert {"Reshape", "Transpose", "MatMul"} <= set(kinds)
    assert {"Conv", "Gemm", "GlobalAveragePool"}.isdisjoint(kinds)
    names = {node.name for node in windowed.graph.nodes}
    assert all(any(f"for instance {name})" in line for name in names) for line in listed)
    assert "cannot be timed by itself on an activation" in str(caught.value)
    runtimes = "onnxruntime, torch; for instance, set device.runtime=onnxruntime"
    assert advice == f"Runtimes that can run all of the network: {runtimes}"


def test_who_can_is_found_by_trying_and_not_by_name(
    windowed: autotailor.SuperNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(profiling.RUNTIMES, "onnxruntime", profiling.RUNTIMES["ncnn"])
    with pytest.raises(ProfilingError, match=r"run all of the network: torch; for instance, set device.runtime=torch"):
        profiling.check_writable(windowed, HOST)


def test_runtimes_that_a_device_cannot_have_are_not_named(windowed: autotailor.SuperNet) -> None:
    board = DeviceConfig.from_section({"name": "board", "transport": "adb", "runtime": "ncnn"})
    with pytest.raises(ProfilingError) as caught:
        profiling.check_writable(windowed, board)
    assert "device.runtime=onnxruntime" not in str(caught.value)


class Split(nn.Module):
    """Channels summed up (which pnnx misreads) in a branch that counts for nothing before it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.gain = nn.Conv2d(3, 8, 3, 2, 1), nn.Parameter(torch.zeros(8, 1, 1))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.stem(x)
        y = y + self.gain * torch.sigmoid(y.sum(1, keepdim=True))
        return self.head(y.mean((2, 3)))


def test_a_network_that_is_converted_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = autotailor.compile(Split().eval(), {}, name="split", resolution=16)
    profiling.check_writable(net, HOST)
    monkeypatch.setattr(ncnn_preparation, "prepare", lambda model: model)
    with pytest.raises(ProfilingError, match=r"as a whole.*computes other outputs than onnxruntime(.|\n)*onnxruntime"):
        profiling.check_writable(net, HOST)


@pytest.mark.parametrize("runtime", ["ncnn", "onnxruntime", "torch"])
def test_networks_that_a_runtime_can_run_lack_nothing(any_net: autotailor.SuperNet, runtime: str) -> None:
    device = DeviceConfig.from_section({"name": "host", "runtime": runtime})
    assert profiling.missing_operators(any_net, profiling.open_runtime(device)) == ()


class Best(nn.Module):
    """The mean of the largest numbers of each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stem(x).flatten(2).topk(3)[0].mean(2))


def test_a_topk_of_a_constant_count_runs_in_onnx_runtime() -> None:
    net = autotailor.compile(Best().eval(), {}, name="best", resolution=16)
    profiling.check_writable(net, DeviceConfig.from_section({"name": "host", "runtime": "onnxruntime"}))
