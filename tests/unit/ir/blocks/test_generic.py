"""Networks that no template was written for: generic blocks, legal variables, exact unique operators."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import torch
from torch import nn

import autotailor
from acceptance import checks, classifiers
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.space import joint_sizes
from autotailor.ir.space.subnet import stack

SIDE = 16
FUSION = FusionRules("test", folds=frozenset({("Conv", "BatchNormalization")}), fuses=frozenset({("Conv", "Relu")}))


def conv(inputs: int, outputs: int, kernel: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Dense(nn.Module):
    """Layers that read everything before them."""

    def __init__(self, inputs: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(conv(inputs + i * growth, 2 * growth, 1), conv(2 * growth, growth)) for i in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


class ThreePaths(nn.Module):
    """A sum of three paths, one of them a normalisation (RepVGG)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 1)
        self.identity = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.wide(x) + self.narrow(x) + self.identity(x))


class Inception(nn.Module):
    """Paths of several depths and kernels, joined by a concatenation."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList(
            [conv(inputs, 16, 1), nn.Sequential(conv(inputs, 24, 1), conv(24, 32)),
             nn.Sequential(conv(inputs, 8, 1), conv(8, 16, 5))]
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([path(x) for path in self.paths], 1)


def network(*body: nn.Module, width: int) -> nn.Module:
    torch.manual_seed(0)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5))
    return classifiers.randomise(nn.Sequential(*body, head).eval())


NETWORKS = {
    "dense": lambda: network(
        conv(3, 16), Dense(16, 16, 3), conv(64, 32, 1), nn.MaxPool2d(2), Dense(32, 16, 2), width=64
    ),
    "sums": lambda: network(conv(3, 32), ThreePaths(32), ThreePaths(32), width=32),
    "inception": lambda: network(conv(3, 16), Inception(16), Inception(64), nn.MaxPool2d(2), Inception(64), width=64),
    "plain": lambda: network(conv(3, 16), conv(16, 16), nn.MaxPool2d(2), conv(16, 32, 5), conv(32, 32), width=32),
}  # fmt: skip
EXPECTED = {
    "dense": ({"Branch"}, [3, 2]),
    "sums": ({"Residual"}, [2]),
    "inception": ({"Branch"}, [2, 1]),
    "plain": ({"Plain"}, [2, 2]),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_blocks_and_variables_are_found_and_right(name: str) -> None:
    net = autotailor.compile(NETWORKS[name](), name=name, resolution=SIDE)
    assert {b.kind for b in net.blocks} == EXPECTED[name][0]
    assert [len(s.blocks) for s in net.stages] == EXPECTED[name][1]
    assert not net.static_parts
    assert checks.smallest_share(net) <= 0.5
    module = net.module()
    for subnet in [net.largest(), *checks.subnets(net, 4)]:
        check = checks.check_subnet(net, module, subnet)
        assert check.passed, (subnet, check)


def test_a_sum_with_an_identity_can_be_left_out() -> None:
    net = autotailor.compile(NETWORKS["sums"](), name="sums", resolution=SIDE)
    assert net.space["stage1.depth"].choices == (0, 1)


def test_inner_widths_keep_their_proportions() -> None:
    net = autotailor.compile(NETWORKS["inception"](), {"divisor": 4, "blocks": {"Branch": {"expand_ratio": [0.1875]}}},
                             name="inception", resolution=SIDE)  # fmt: skip
    half = net.slice(net.smallest())
    widths = [half.weights[n.inputs[1]].shape[0] for n in half.nodes if n.kind == "Conv"]
    assert widths[1:6] == [16, 12, 32, 4, 16]


@pytest.mark.parametrize("limit", [1, joint_sizes.TABLE_LIMIT])
def test_operators_of_a_dense_network_are_those_of_brute_force(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_sizes, "TABLE_LIMIT", limit)
    space = {"resolution": [8, 16], "blocks": {"Branch": {"width": [0.5, 1.0], "expand_ratio": [1.0, 2.0]}}}
    net = autotailor.compile(NETWORKS["dense"](), space, name="dense", resolution=SIDE)
    assert sum(v.kind == "width" for v in net.space) == 5
    assert any(p.derived is not None for p in net.places(FUSION)) == (limit == 1)
    choices = [range(len(v.choices)) for v in net.space]
    every = [autotailor.SubNet(net.space, row) for row in itertools.product(*choices)]
    assert {f for s in every for f in net.operators(s, FUSION)} == set(net.operators(fusion=FUSION))
    some = random.Random(0).sample(every, 12)
    for subnet in some:
        standalone = autotailor.SuperNet.of(net.slice(subnet), {})
        assert set(net.operators(subnet, FUSION)) == set(standalone.operators(fusion=FUSION))
    built = [sum(p.numel() for p in net.build(s).parameters()) for s in some]
    assert net.parameters().predict(stack(some)) * 1e6 == pytest.approx(np.array(built))
