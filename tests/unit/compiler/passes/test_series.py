"""Networks on signals ``[n, channels, length]``: the SuperNet computes what the file does, and so do its exports."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import autotailor
from autotailor.ir.errors import GraphError
from autotailor.ir.supernet import SuperNet

LENGTH, CHANNELS = 64, 9


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Module:
    pad = dilation * (kernel // 2)
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, stride, pad, dilation, groups, bias=False),
        nn.BatchNorm1d(outputs),
        nn.ReLU(),
    )


class Residual(nn.Module):
    def __init__(self, width: int, dilation: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(width, 2 * width, dilation=dilation), nn.Conv1d(2 * width, width, 3, padding=1))
        self.gate = nn.Parameter(torch.ones(width, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.gate * self.body(x))


class Branches(nn.Module):
    """Depthwise convolutions beside a pooling, joined; an attention over positions in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(CHANNELS, 16, 5, 2)
        self.deep = nn.Sequential(conv(16, 16, 5, groups=16), conv(16, 16, 1))
        self.pool = nn.MaxPool1d(3, 1, 1)
        self.mix = conv(32, 32, 1)
        self.norm, self.attend = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(32, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = self.mix(torch.cat([self.deep(x), self.pool(x)], 1)).transpose(1, 2)
        y = self.norm(x)
        x = x + self.attend(y, y, y, need_weights=False)[0]
        return self.head(x.mean(1))


class Decoder(nn.Module):
    """Maps of a signal's length: down, up again, and joined with what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = conv(CHANNELS, 16, 4, 2), nn.ConvTranspose1d(16, 16, 4, 2, 1)
        self.last = nn.Conv1d(16 + CHANNELS, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([self.up(self.down(x)[..., : LENGTH // 2]), x], 1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "residual": lambda: nn.Sequential(
        conv(CHANNELS, 16, 7, 2), Residual(16), Residual(16, 2), nn.AvgPool1d(2), Residual(16), nn.AdaptiveAvgPool1d(1),
        nn.Flatten(), nn.Linear(16, 6),
    ),
    "branches": Branches,
    "decoder": Decoder,
}  # fmt: skip


def exported(path: Path, network: nn.Module) -> Path:
    axes = {"signal": {0: "n"}, "answer": {0: "n"}}
    example = torch.zeros(1, CHANNELS, LENGTH)
    names = {"input_names": ["signal"], "output_names": ["answer"]}
    torch.onnx.export(network, (example,), str(path), dynamic_axes=axes, dynamo=False, **names)
    return path


def answer(path: Path, signals: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {session.get_inputs()[0].name: signals})[0]  # type: ignore[type-arg]
    return found


@pytest.fixture(scope="module", params=NETWORKS)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SuperNet]:
    torch.manual_seed(0)
    network = NETWORKS[request.param]().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    path = exported(tmp_path_factory.mktemp("series") / f"{request.param}.onnx", network)
    return path, autotailor.compile(path)


def test_the_supernet_computes_what_the_file_does(given: tuple[Path, SuperNet]) -> None:
    path, net = given
    signals = np.random.default_rng(0).normal(size=(3, CHANNELS, LENGTH)).astype(np.float32)
    with torch.no_grad():
        found = net.module().eval().activate(net.largest())(torch.from_numpy(signals).unsqueeze(2)).numpy()
    np.testing.assert_allclose(found, answer(path, signals), atol=1e-5)
    assert net.input_shape == (1, CHANNELS, 1, LENGTH)
    assert any(variable.kind in ("width", "expand_ratio") for variable in net.space)


def test_exports_take_signals_as_the_file_does(given: tuple[Path, SuperNet], tmp_path: Path) -> None:
    import onnx

    net = given[1]
    signals = np.random.default_rng(1).normal(size=(1, CHANNELS, LENGTH)).astype(np.float32)
    subnet = net.smallest()
    net.export_onnx(subnet, tmp_path / "maps.onnx")
    onnx.save(net.graph.given.restored(onnx.load(tmp_path / "maps.onnx")), str(tmp_path / "signals.onnx"))
    assert net.graph.given.image((1, CHANNELS, 1, LENGTH)) == f"float32 [1, {CHANNELS}, {LENGTH}]"
    with torch.no_grad():
        wanted = net.build(subnet)(torch.from_numpy(signals).unsqueeze(2)).numpy()
    np.testing.assert_allclose(answer(tmp_path / "signals.onnx", signals), wanted, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_images_of_any_number_of_channels_are_read(channels: int, tmp_path: Path) -> None:
    layers = nn.Conv2d(channels, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    network = nn.Sequential(*layers).eval()
    torch.onnx.export(network, (torch.zeros(1, channels, 16, 16),), str(tmp_path / "n.onnx"), dynamo=False)
    assert autotailor.compile(tmp_path / "n.onnx").input_shape == (1, channels, 16, 16)


def test_what_is_neither_a_signal_nor_an_image_is_refused(tmp_path: Path) -> None:
    torch.onnx.export(nn.Linear(8, 4), (torch.zeros(1, 8),), str(tmp_path / "n.onnx"), dynamo=False)
    with pytest.raises(GraphError, match=r"no batch of images or signals; expected a float tensor \[batch, channels"):
        autotailor.compile(tmp_path / "n.onnx")
