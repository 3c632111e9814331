"""Modules of PyTorch as sources: how they are exported."""

import torch

import autotailor


class Plain(torch.nn.Module):
    """A network without BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def test_a_module_keeps_its_mode() -> None:
    network = Plain().train()
    net = autotailor.compile(network, resolution=16)
    assert net.input_shape == (1, 3, 16, 16)
    assert network.training


class Gelu(torch.nn.Module):
    """torch.cdist has no symbolic in the classic exporter's opset."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.special.expit(self.conv(x)).mean((2, 3)) + torch.ops.aten.alias(x[:, :1, 0, 0]))


def test_what_the_classic_exporter_cannot_trace_is_captured() -> None:
    network = Gelu().eval()
    net = autotailor.compile(network, resolution=16)
    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        assert torch.allclose(net.build(net.largest())(x), network(x), atol=1e-4)
