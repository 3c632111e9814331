"""What training may change: weights and slopes, and neither means of the image nor blur."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import autotailor
from autotailor.ir.execution.modules.trainable import untrainable


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
    """ReZero's scale, GeM's power and a bias of one are learnt; coordinates are not."""

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
        assert {"scale", "power", "bias"} <= graph.weights.keys() - fixed
        assert "coordinates" in fixed
    module = net.module().activate(net.smallest()).train()
    module(torch.rand(2, 3, 16, 16)).square().sum().backward()
    singles = [parameter for parameter in module.parameters() if parameter.numel() == 1]
    assert len(singles) == 3
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in singles)


def test_the_slope_of_a_prelu_gets_gradients() -> None:
    net = autotailor.compile(Fixed().eval(), {}, resolution=16)
    module = net.module().activate(net.largest()).train()
    module(torch.randn(2, *net.input_shape[1:])).square().sum().backward()
    slopes = [p for p in module.parameters() if p.numel() == 1]
    assert slopes
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in slopes)
