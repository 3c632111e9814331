"""What training may change: weights and slopes, and neither means of the image nor blur."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir
import pytest
import torch
from torch import nn

import autotailor
from autotailor.compiler.sources.export import export_module
from autotailor.ir.execution.modules.trainable import untrainable
from autotailor.ir.graph import Graph


class Fixed(nn.Module):
    """Standardises its image, blurs its map, and has a slope that it has learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.rand(1, 3, 1, 1))
        self.register_buffer("blur", torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]).expand(8, 1, 3, 3) / 16)
        self.stem, self.slope, self.head = nn.Conv2d(3, 8, 3), nn.PReLU(), nn.Linear(8, 5)
        self.depthwise, self.scale = nn.Conv2d(8, 8, 3, groups=8), nn.Parameter(torch.rand(8, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.slope(self.stem((x / 255 - self.mean) / (self.mean + 1)))
        return self.head((self.depthwise(nn.functional.conv2d(x, self.blur, groups=8)) * self.scale).mean((2, 3)))


def test_means_deviations_and_blur_stay_and_weights_and_slopes_train() -> None:
    graph = autotailor.compile(Fixed().eval(), {}, resolution=16).graph
    fixed = untrainable(graph)
    shapes = [graph.weights[name].shape for name in graph.weights if name not in fixed]
    assert sorted(shape for shape in shapes if len(shape) == 4) == [(8, 1, 3, 3), (8, 3, 3, 3)]
    assert (8, 1, 1) in shapes
    assert {graph.weights[n].size for node in graph.nodes if node.kind == "PRelu" for n in node.inputs[1:]} == {1}
    assert not fixed & {name for node in graph.nodes if node.kind == "PRelu" for name in node.inputs}
    assert {tuple(graph.weights[name].shape) for name in fixed} >= {(1, 3, 1, 1), (8, 1, 3, 3)}


class Single(nn.Module):
    """ReZero's scale and a bias of one train; coordinates stay, and GeM's power, whose inverse is another constant."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("coordinates", torch.linspace(0, 1, 14).view(1, 1, 1, 14))
        self.stem, self.block, self.head = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 1), nn.Linear(8, 5)
        self.scale, self.power, self.bias = (nn.Parameter(torch.tensor(value)) for value in (0.5, 3.0, 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x) + self.coordinates
        x = x + self.scale * self.block(x) + self.bias
        x = x.clamp(min=1e-6).pow(self.power).mean((2, 3)).pow(1.0 / self.power)
        return self.head(x)


def test_single_numbers_that_a_module_has_learnt_train_and_its_buffers_stay(tmp_path: Path) -> None:
    net = autotailor.compile(Single().eval(), {}, resolution=16)
    net.save(tmp_path / "net.pt")
    for graph in (net.graph, autotailor.load(tmp_path / "net.pt").graph, net.slice(net.smallest())):
        fixed = untrainable(graph)
        assert {"scale", "bias"} <= graph.weights.keys() - fixed
        assert {"coordinates", "power"} <= fixed
    module = net.module().activate(net.smallest()).train()
    module(torch.rand(2, 3, 16, 16)).square().sum().backward()
    singles = [parameter for parameter in module.parameters() if parameter.numel() == 1]
    assert len(singles) == 2
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in singles)


def test_the_slope_of_a_prelu_gets_gradients() -> None:
    net = autotailor.compile(Fixed().eval(), {}, resolution=16)
    module = net.module().activate(net.largest()).train()
    module(torch.randn(2, *net.input_shape[1:])).square().sum().backward()
    slopes = [p for p in module.parameters() if p.numel() == 1]
    assert slopes
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in slopes)


RANDOM = np.random.default_rng(0)
RATES = 1 / 100 ** (np.arange(4) / 4)
SIDE = np.concatenate([np.sin(np.arange(4)[:, None] * RATES), np.cos(np.arange(4)[:, None] * RATES)], axis=1)
GRID = np.concatenate([np.repeat(SIDE, 4, axis=0), np.tile(SIDE, (4, 1))], axis=1)
RAMP = np.linspace(-1, 1, 14)
COMPUTED = {
    "sines": np.concatenate([np.sin(RAMP[:, None] * RATES), np.cos(RAMP[:, None] * RATES)], axis=1)[None],
    "small sines, as scaled by a network": 0.02 * np.sin(np.arange(9)[:, None] * RATES),
    "a table of rotations": np.cos(np.arange(49)[:, None] * RATES),
    "sines over a grid": GRID[None],
    "sines over a grid, behind a class token": np.concatenate([np.zeros((1, 16)), GRID])[None],
    "coordinates": np.stack(np.meshgrid(RAMP, RAMP))[None],
    "pixels": np.arange(224.0)[None],
    "a mask": np.where(np.eye(16)[None] > 0, 0.0, -100.0),
}
LEARNT = {
    "positions": RANDOM.normal(0, 0.02, (1, 17, 16)),
    "positions that began as sines": GRID[None] + RANDOM.normal(0, 0.003, (1, 16, 16)),
    "a scale that begins with one": np.ones((16, 1, 1)),
    "a scale that has learnt little": 1 + 1e-4 * RANDOM.normal(size=(16, 1, 1)),
    "a bias that begins with zero": np.zeros((1, 16, 16)),
    "a class token": RANDOM.normal(size=(1, 1, 16)),
    "a bias between positions": RANDOM.normal(size=(2, 9, 9)),
}


class Positioned(nn.Module):
    """Adds a buffer to its map."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("table", torch.from_numpy(table.astype(np.float32)))
        self.stem, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.stem(x) + self.table).mean((2, 3)))


@pytest.fixture(scope="module")
def positioned() -> Graph:
    """The graph of an ONNX file that adds coordinates to its map."""
    network = Positioned(np.broadcast_to(RAMP, (1, 1, 14, 14)))
    return autotailor.compile(onnx_ir.to_proto(export_module(network.eval(), 16)), {}).graph


def test_coordinates_of_an_onnx_file_stay(positioned: Graph) -> None:
    assert not positioned.buffers
    assert [positioned.weights[name].shape for name in untrainable(positioned)] == [(1, 1, 14, 14)]


@pytest.mark.parametrize("name", [*COMPUTED, *LEARNT])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_constants_that_are_computed_stay_and_learnt_ones_train(name: str, kind: type, positioned: Graph) -> None:
    values = (COMPUTED | LEARNT)[name].astype(kind)
    graph = replace(positioned, weights={**positioned.weights, "w": values})
    assert ("w" in untrainable(graph)) == (name in COMPUTED)
    assert "w" not in untrainable(replace(graph, parameters=frozenset({"w"})))
