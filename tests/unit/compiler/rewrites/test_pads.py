"""Pads of zeros in front of windows: the space is that of the network without a module for them, and so are numbers."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import autotailor
from autotailor.ir.supernet import SuperNet
from onnx_text import model_of
from reference import assert_reads

SIDE = 32


def block(pad: nn.Module | None, stride: int = 1) -> list[nn.Module]:
    """An inverted residual of 8 channels, whose depthwise convolution of 5x5 pads itself, or is padded by a module."""
    depthwise = nn.Conv2d(48, 48, 5, stride, padding=0 if pad else 2, groups=48, bias=False)
    return [
        *(nn.Conv2d(8, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU6(), *([pad] if pad else [])),
        *(depthwise, nn.BatchNorm2d(48), nn.ReLU6(), nn.Conv2d(48, 8, 1, bias=False), nn.BatchNorm2d(8)),
    ]


class Residual(nn.Module):
    """x + body(x), or body(x) + x."""

    def __init__(self, pad: nn.Module | None, swapped: bool = False) -> None:
        super().__init__()
        self.body, self.swapped = nn.Sequential(*block(pad)), swapped

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + x if self.swapped else x + self.body(x)


def compiled(pad: nn.Module | None, asymmetric: nn.Module | None = None, swapped: bool = False) -> SuperNet:
    """Stem, a block of stride 2, two residual blocks, and a classifier."""
    stem = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6()]
    body = [*block(asymmetric or pad, stride=2), Residual(pad, swapped), Residual(pad, swapped)]
    network = nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    return autotailor.compile(network.eval(), resolution=SIDE)


def variables(net: SuperNet) -> list[tuple[str, tuple[float | int, ...]]]:
    return [(variable.name, variable.choices) for variable in net.space.variables]


def test_pads_of_a_module_and_the_order_of_a_sum_leave_the_space_of_the_network_without_them() -> None:
    plain, padded, swapped = compiled(None), compiled(nn.ZeroPad2d(2)), compiled(nn.ZeroPad2d(2), swapped=True)
    kinds = Counter(variable.kind for variable in plain.space.variables)
    assert (kinds["kernel_size"], kinds["expand_ratio"], kinds["depth"]) == (3, 3, 1)
    assert variables(padded) == variables(swapped) == variables(plain)
    assert not any(node.kind == "Pad" for node in padded.graph.nodes)


def test_pads_that_differ_between_two_sides_keep_kernels_and_ratios() -> None:
    same = compiled(nn.ZeroPad2d(2), asymmetric=nn.ZeroPad2d((1, 2, 1, 2)))
    assert variables(same) == variables(compiled(None))


def test_reflections_stay_and_keep_depth_and_ratios_whatever_the_order_of_the_sum() -> None:
    reflected, swapped = compiled(nn.ReflectionPad2d(2)), compiled(nn.ReflectionPad2d(2), swapped=True)
    kinds = Counter(variable.kind for variable in reflected.space.variables)
    assert (kinds["kernel_size"], kinds["expand_ratio"], kinds["depth"]) == (0, 3, 1)
    assert variables(swapped) == variables(reflected)


# What makes the map of the Pad, what reads it, and how many of its two rows stand above.
FOLDED: dict[str, tuple[Any, ...]] = {
    "convolution": ("Identity", "q = Conv <pads = [1, 0, 0, 1]> (p, inner)", 0),
    "average that counts its pads":
        ("Identity", "q = AveragePool <kernel_shape = [4, 4], pads = [1, 1, 1, 1], count_include_pad = 1> (p)"),
    "average without pads": ("Identity", "q = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (p)"),
    "maximum behind ReLU": ("Relu", "q = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (p)"),
}  # fmt: skip
KEPT: dict[str, tuple[Any, ...]] = {
    "maximum with one more row behind": ("Relu", "q = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (p)", 0),
    "average that does not count its pads":
        ("Identity", "q = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)"),
    "average with windows of pads alone":
        ("Identity", "q = AveragePool <kernel_shape = [1, 1], strides = [2, 2]> (p)"),
    "maximum of negative numbers": ("Identity", "q = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (p)"),
    "maximum with own pads": ("Neg", "q = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)"),
    "pads that are read twice": ("Relu", "c = Conv (p, inner) n = Neg (p) d = Conv (n, inner) q = Add (c, d)"),
}  # fmt: skip


def padded(before: str, after: str, above: int = 1) -> onnx.ModelProto:
    """A stem, a Pad of two rows, so many of them above, and of a column on each side, and a classifier."""
    rng = np.random.default_rng(0)
    weights = {
        "stem": rng.standard_normal((16, 3, 3, 3)).astype(np.float32) - 0.3,
        "inner": rng.standard_normal((16, 16, 3, 3)).astype(np.float32),
        "head": rng.standard_normal((5, 16)).astype(np.float32),
        "pads": np.array([0, 0, above, 1, 0, 0, 2 - above, 1], dtype=np.int64),
    }
    image = f"m = Conv <strides = [2, 2]> (x, stem)  t = {before} (m)"
    head = "g = GlobalAveragePool (q)  f = Flatten (g)  y = Gemm <transB = 1> (f, head)"
    return model_of(f"{image}  p = Pad (t, pads)  {after}  {head}", weights, shape=(1, 3, SIDE, SIDE))


@pytest.mark.parametrize("case", FOLDED)
def test_a_pad_of_zeros_is_folded_exactly(case: str) -> None:
    assert not any(node.kind == "Pad" for node in assert_reads(padded(*FOLDED[case])).nodes)


@pytest.mark.parametrize("case", KEPT)
def test_a_pad_stays_where_a_window_would_compute_something_else(case: str) -> None:
    assert sum(node.kind == "Pad" for node in assert_reads(padded(*KEPT[case])).nodes) == 1
