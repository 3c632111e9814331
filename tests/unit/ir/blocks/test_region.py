"""The trunk: operators and fork-join regions in a row."""

import torch
from torch import nn

import autotailor
from autotailor.ir.blocks.region import Region, parse_trunk


class PreActivated(nn.Module):
    """x + conv(silu(x)), where the SiLU and the sum both read x."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = x + self.conv(x * torch.sigmoid(x))
        return self.head(x.mean((2, 3)))


class Crossed(nn.Module):
    """Two paths that read each other: no region of paths."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 2)
        self.left, self.right = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        left, right = self.left(x), self.right(x)
        left, right = left + torch.relu(right), right + torch.relu(left)
        return self.head((left * right).mean((2, 3)))


def regions(network: nn.Module) -> list[Region]:
    net = autotailor.compile(network, resolution=16)
    return [item for item in parse_trunk(net.graph) if isinstance(item, Region)]


def test_readers_that_meet_early_make_a_region_inside_their_path() -> None:
    (region,) = regions(PreActivated())
    assert region.join.kind == "Add"
    assert region.paths is not None
    main, shortcut = sorted(region.paths, key=len, reverse=True)
    assert shortcut == ()
    assert isinstance(main[0], Region)
    assert main[0].join.kind == "Mul"
    assert [item.kind for item in main[1:]] == ["Conv"]


def test_paths_that_cross_are_one_region_without_paths() -> None:
    (region,) = regions(Crossed())
    assert region.join.kind == "Mul"
    assert region.paths is None
